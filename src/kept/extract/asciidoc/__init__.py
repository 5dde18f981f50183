"""AsciiDoc, as Asciidoctor and asciidoc.py read it. Nothing outside of the page is read."""
