"""Stems of words, roughly: pure and quick, and the same whatever stemmer a database has."""

from functools import lru_cache

from kept.model.tokens import tokenize


@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, tokenize(text)))


_ENDINGS = ("ings", "ing", "ies", "ied", "es", "ed", "ers", "er", "ly", "s", "e", "y")


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Return a word without its ending, roughly: 'logging', 'logs' and 'log' become the same."""
    if len(word) < 4 or word.endswith("ss") or not word.isalpha():
        return word
    short = next((word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending)), word)
    if len(short) < 3:
        return word.removesuffix("s")
    return short[:-1] if len(short) > 3 and short[-1] == short[-2] and short[-1] not in "aeiouls" else short
