"""Kept: a complete, current, searchable copy of documentation."""

__version__ = "0.1.0"
