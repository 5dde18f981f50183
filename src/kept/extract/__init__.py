"""Reading it: bytes in, words out. Pure: no network, no files, no database; runs in worker processes."""
