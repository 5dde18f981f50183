"""The only place that builds things and joins them."""

from kept.runtime.runtime import Runtime, open_runtime

__all__ = ["Runtime", "open_runtime"]
