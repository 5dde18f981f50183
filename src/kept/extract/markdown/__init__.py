"""Markdown. Import `reader.extract` from outside, and `reader.HeadingSlugs` for other readers; `blocks`, which is
compiled and does not import markdown-it-py, serves the section splitter.
"""
