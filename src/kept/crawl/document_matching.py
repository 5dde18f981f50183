"""Which document each URL is now. Decided once, at activation, so that the order of arrival does not matter.

For each URL that brought content:

1. a URL that still answers keeps its document (those never come here);
2. the end of a permanent redirect from a document's URL is that document, moved;
3. a one-to-one content match among this crawl's lost, then the missing, then the deleted, is that document;
4. a document that is not shown and last lived at this URL is restored;
5. among files, one of this crawl's lost whose path differs only in case or in how its letters are composed, or that has
   the same path but for its suffix, or the same name, and a similar text, is that document, moved and edited;
6. else it is a new document.

Before all that, pages that repeat another page are told: they are dropped, and nothing moves to them.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar
from urllib.parse import unquote

MIN_MATCH_CHARS = 64  # characters of markdown: too little to tell two pages apart
MIN_SIMILARITY = 0.5  # the share of two texts that they have in common, at least
MAX_COMPARED_CHARS = 200_000


class MatchTier(IntEnum):
    """Where a former document is looked for first."""

    LOST = 0  # by this crawl
    MISSING = 1
    DELETED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPage:
    """A URL that brought content and is no document of the base."""

    version_id: int
    document: str  # made provisionally by the crawl
    url: str
    depth: int
    content_id: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerDocument:
    """A document that the new generation would not show, as it last was."""

    document: str
    url: str
    content_id: int
    tier: MatchTier
    born: int = 0  # the generation that brought what it last was


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveCandidate:
    """A document whose URL redirects permanently, and where the redirects end."""

    document: str
    url: str
    depth: int
    target_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentMatch:
    """An arrival is a document that was there before."""

    new_page: NewPage
    document: str
    from_url: str


def resolve_redirects(url: str, redirects: Mapping[str, str]) -> str | None:
    """Where a chain of redirects ends; None if it never does."""
    seen = {url}
    while url in redirects:
        url = redirects[url]
        if url in seen:
            return None
        seen.add(url)
    return url


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateCandidate:
    """A page that would be shown at a URL, as far as a duplicate is told by it."""

    url: str
    content_id: int
    is_html: bool


def html_urls_for_markdown(stem: str) -> tuple[str, ...]:
    """Where the page is that a site offers as Markdown at ``stem.md``, the likeliest first."""
    folder, _, name = stem.rpartition("/")
    above = (f"{folder}/",) if name in ("index", "index.html") else ()
    return stem, f"{stem}.html", f"{stem}/", f"{stem}/index.html", *above


def find_duplicates(
    pages: Iterable[tuple[DuplicateCandidate, str]], shown: Mapping[str, DuplicateCandidate]
) -> dict[str, str]:
    """Which pages repeat another, and where the one is that stays. ``named``: with the URL each should be known by.

    A page repeats the one that it names if that has the same content; Markdown repeats the page that it is the source
    of. Of pages that name each other in a ring the first by URL stays.
    """
    repeats: dict[str, str] = {}
    for page, canonical in pages:
        for url in (canonical,) if page.is_html else html_urls_for_markdown(canonical):
            other = shown.get(url)
            if other and url != page.url and (other.is_html if not page.is_html else _has_same_content(page, other)):
                repeats[page.url] = url
                break
    stays: dict[str, str] = {}
    for url in repeats:
        way: dict[str, None] = {}
        while url in repeats and url not in stays and url not in way:
            way[url] = None
            url = repeats[url]
        end = min(list(way)[list(way).index(url) :]) if url in way else stays.get(url, url)
        stays |= dict.fromkeys(way, end)
    return {url: end for url, end in stays.items() if url != end}


def _has_same_content(page: DuplicateCandidate, other: DuplicateCandidate) -> bool:
    return page.content_id == other.content_id


def match_documents(
    new_pages: Iterable[NewPage], move_candidates: Iterable[MoveCandidate], former: Sequence[FormerDocument]
) -> list[DocumentMatch]:
    """Which arrivals are documents that were there before, by 2 to 4. Each document and each arrival is taken once."""
    matches: list[DocumentMatch] = []
    free = {arrival.url: arrival for arrival in new_pages}
    taken: set[str] = set()

    def take(arrival: NewPage, document: str, from_url: str) -> None:
        matches.append(DocumentMatch(new_page=arrival, document=document, from_url=from_url))
        taken.add(document)
        del free[arrival.url]

    for move in sorted(move_candidates, key=lambda move: (move.depth, move.url)):
        if move.target_url in free:
            take(free[move.target_url], move.document, move.url)

    candidates = _by_content(former)
    for content_id, alike in _by_content(free.values()).items():
        same = [one for one in candidates[content_id] if one.document not in taken]
        tier = min((one.tier for one in same), default=None)
        best = [one for one in same if one.tier is tier]
        if len(alike) == 1 and len(best) == 1 and alike[0].size >= MIN_MATCH_CHARS:
            take(alike[0], best[0].document, best[0].url)

    for one in sorted(former, key=lambda one: one.born, reverse=True):  # the one that was there last comes first
        if one.tier is not MatchTier.LOST and one.document not in taken and one.url in free:
            take(free[one.url], one.document, one.url)
    return matches


def pair_by_path_key(
    path_key: Callable[[str], str], new_pages: Iterable[NewPage], lost: Iterable[FormerDocument]
) -> list[tuple[NewPage, FormerDocument]]:
    """What arrived under a name that one lost document had, and no other; and that document. See 5."""
    former_by_key = _by_key((path_key(one.url), one) for one in lost)
    new_by_key = _by_key((path_key(one.url), one) for one in new_pages)
    pairs = ((alike, former_by_key[name]) for name, alike in new_by_key.items() if name in former_by_key)
    return [(alike[0], same[0]) for alike, same in pairs if len(alike) == 1 and len(same) == 1]


def normalized_path(url: str) -> str:
    """Equal for paths that some file systems take for one: whatever case, however their letters are composed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", unquote(url)).casefold())


def path_without_suffix(url: str) -> str:
    """Equal for paths that differ only in their suffix: a page that is written in another language now."""
    folder, _, name = normalized_path(url).rpartition("/")
    return f"{folder}/{name.rpartition('.')[0] or name}"


def file_name(url: str) -> str:
    """Equal for files of one name, in whatever folder."""
    return normalized_path(url).rpartition("/")[2]


PATH_KEYS = (normalized_path, path_without_suffix, file_name)


def is_similar(one: str, other: str) -> bool:
    """Whether two texts have about half of what they say in common, in runs of three words."""
    runs, others = _count_trigrams(one), _count_trigrams(other)
    return 2 * (runs & others).total() >= (runs.total() + others.total()) * MIN_SIMILARITY > 0


def _count_trigrams(text: str) -> Counter[tuple[str, ...]]:
    words = text[:MAX_COMPARED_CHARS].split()
    return Counter(zip(words, words[1:], words[2:], strict=False)) if len(words) > 3 else Counter([tuple(words)])


T = TypeVar("T", NewPage, FormerDocument)


def _by_key(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    grouped: defaultdict[str, list[T]] = defaultdict(list)
    for key, one in pairs:
        grouped[key].append(one)
    return grouped


def _by_content(alike: Iterable[T]) -> defaultdict[int, list[T]]:
    grouped: defaultdict[int, list[T]] = defaultdict(list)
    for one in alike:
        grouped[one.content_id].append(one)
    return grouped
