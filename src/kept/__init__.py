"""Kept: a complete, current, searchable copy of documentation."""


def __getattr__(name: str) -> str:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version  # late: it is slow to import, and few commands need it

    return version("kept-docs")
