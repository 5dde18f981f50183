"""AsciiDoc, as Asciidoctor and asciidoc.py read it. Files are included only if the crawl has found them."""
