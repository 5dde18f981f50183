"""Dialects of Markdown, read as plain Markdown: components, admonitions, tabs, directives, roles."""
