"""Bytes in, Markdown and sections out. Pure: no network, no files, no database; runs in reader processes."""
