"""HTML as Markdown. Import `reader.extract` and `reader.check_region` from outside; readers of other formats that write
Markdown also use `markdown_text` and `tables.markdown_table`.
"""
