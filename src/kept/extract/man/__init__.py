"""Manual pages: a subset of roff with the macros of man, mdoc and tbl."""
