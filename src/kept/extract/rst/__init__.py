"""Read reStructuredText as Sphinx and docutils write it; see reader.py."""
