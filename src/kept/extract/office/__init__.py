"""Office documents and e-books as Markdown. Each format is a reader (`docx`, `pptx`, `xlsx`, `epub`): import
its `extract`, which `kept.extract.reader` does by content type. The other modules serve these readers only.
"""
