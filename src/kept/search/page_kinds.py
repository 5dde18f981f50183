"""Tells pages that are rarely wanted, such as indexes and release notes, from others."""

from collections.abc import Collection
from functools import lru_cache

_LISTING_KINDS = frozenset({"contents", "index", "search"})
_LOW_VALUE_KINDS = frozenset({"changelog", "contents", "index", "search", "stub"})
_LOW_VALUE_NAMES = frozenset({"changelog", "genindex", "modindex", "release", "releases", "relnotes", "whatsnew"})
_LISTING_NAMES = frozenset({
    "_modules", "allclasses-index", "allpackages-index", "changes", "class-use", "constant-values", "contents",
    "deprecated-list", "help-doc", "history", "index-all", "index-files", "new-list", "news", "overview-tree",
    "package-tree", "package-use", "search", "serialized-form", "whats-new",
})  # fmt: skip
_INDEX_NAMES = frozenset({
    "allclasses-index", "allpackages-index", "api-index-full", "bookindex", "concept-index", "doc_keyword_crossref",
    "editor-functions-index", "functions-index", "index-all", "modindex", "options-index", "py-modindex",
    "style-and-tag-index", "variables-index",
})  # fmt: skip
_LOW_VALUE_QUERY_WORDS = frozenset({
    "change", "changed", "changelog", "changes", "deprecated", "deprecation", "history", "index", "new", "news",
    "release", "released", "releases", "removed", "source", "upgrade", "upgrading", "version",
})  # fmt: skip


@lru_cache(maxsize=4096)
def is_listing(kind: str, url: str) -> bool:
    """Whether a page only points to others, by its kind or else by its name, so that it never comes before them."""
    name = url.partition("#")[0].rpartition("/")[2].partition(".")[0].lower()
    return kind in _LISTING_KINDS or name.startswith("genindex") or name in _INDEX_NAMES


def is_low_value(kind: str, url: str) -> bool:
    """Whether a page is release notes, an index or a stub, by its kind or else by its name."""
    return kind in _LOW_VALUE_KINDS or is_low_value_page(url)


@lru_cache(maxsize=4096)
def is_low_value_page(url: str) -> bool:
    """Whether a page is release notes, a changelog or an index, which mention everything and explain nothing."""
    names = [part.partition(".")[0] for part in url.partition("://")[2].partition("/")[2].lower().split("/")]
    return any(
        name in _LISTING_NAMES or not _LOW_VALUE_NAMES.isdisjoint(name.replace("_", "-").split("-")) for name in names
    )


def wants_low_value(words: Collection[str]) -> bool:
    """Whether a query asks for what such pages say."""
    return not _LOW_VALUE_QUERY_WORDS.isdisjoint(words)
