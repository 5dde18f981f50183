"""Document matching: which document each new URL is. Decided once, at activation, so that the order of arrival of
pages does not matter.

For each URL with new content:

1. a URL that still answers keeps its document (those are not considered here);
2. the end of a permanent redirect from a document's URL, or of a rename that its origin reports, is that document,
   moved;
3. a one-to-one content match among the documents lost by this crawl, then the missing, then the deleted, is that one;
4. a document that is not shown and last had this URL is restored;
5. of files, one that is lost and whose path differs only in case or Unicode composition is that document, moved; also
   one with the same path but for its suffix, or with the same name, if its text is similar;
6. else it is a new document.

Before all that, duplicates are found: they are dropped, and nothing moves to them.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import unquote

from kept.model.document import FormerDocument, MatchTier, NewPage

MIN_MATCH_CHARS = 64  # of markdown; shorter contents are too alike to prove a move
MIN_SIMILARITY = 0.5  # of two texts, by the share of word trigrams that they have in common
MAX_COMPARED_CHARS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveCandidate:
    """A document whose URL redirects permanently, and the end of the redirects."""

    document: str
    url: str
    depth: int
    target_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentMatch:
    """A new page that is an existing document."""

    new_page: NewPage
    document: str
    from_url: str


def resolve_redirects(url: str, redirects: Mapping[str, str]) -> str | None:
    """Return the end of a chain of redirects, or None if it is a loop."""
    seen = {url}
    while url in redirects:
        url = redirects[url]
        if url in seen:
            return None
        seen.add(url)
    return url


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateCandidate:
    """A page of the new generation, as far as duplicates are found by it."""

    url: str
    content_id: int
    is_html: bool


def html_urls_for_markdown(stem: str) -> tuple[str, ...]:
    """Return the URLs at which a site may have the page that it offers as Markdown at ``stem.md``, likeliest first."""
    folder, _, name = stem.rpartition("/")
    above = (f"{folder}/",) if name in ("index", "index.html") else ()
    return stem, f"{stem}.html", f"{stem}/", f"{stem}/index.html", *above


def find_duplicates(
    pages: Iterable[tuple[DuplicateCandidate, str]], living: Mapping[str, DuplicateCandidate]
) -> dict[str, str]:
    """Return the duplicates among ``pages``, each with the URL of the page that stays.

    Every page comes with its canonical URL; ``living`` are the pages of the new generation by URL. HTML is a duplicate
    of its canonical page if that has the same content; Markdown is one of the HTML page that is made from it. Of pages
    that name each other in a ring the first by URL stays.
    """
    duplicate_of: dict[str, str] = {}
    for page, canonical in pages:
        for url in (canonical,) if page.is_html else html_urls_for_markdown(canonical):
            other = living.get(url)
            if other and url != page.url and (other.is_html if not page.is_html else _has_same_content(page, other)):
                duplicate_of[page.url] = url
                break
    ends: dict[str, str] = {}
    for url in duplicate_of:
        chain: dict[str, None] = {}
        while url in duplicate_of and url not in ends and url not in chain:
            chain[url] = None
            url = duplicate_of[url]
        end = min(list(chain)[list(chain).index(url) :]) if url in chain else ends.get(url, url)
        ends |= dict.fromkeys(chain, end)
    return {url: end for url, end in ends.items() if url != end}


def _has_same_content(page: DuplicateCandidate, other: DuplicateCandidate) -> bool:
    return page.content_id == other.content_id


def match_documents(
    new_pages: Iterable[NewPage], move_candidates: Iterable[MoveCandidate], former: Sequence[FormerDocument]
) -> list[DocumentMatch]:
    """Match new pages with existing documents by rules 2 to 4. Each page and each document is matched at most once."""
    matches: list[DocumentMatch] = []
    free = {page.url: page for page in new_pages}
    matched: set[str] = set()

    def add_match(page: NewPage, document: str, from_url: str) -> None:
        matches.append(DocumentMatch(new_page=page, document=document, from_url=from_url))
        matched.add(document)
        del free[page.url]

    for move in sorted(move_candidates, key=lambda move: (move.depth, move.url)):
        if move.target_url in free:
            add_match(free[move.target_url], move.document, move.url)

    candidates = _by_content(former)
    for content_id, pages in _by_content(free.values()).items():
        same = [one for one in candidates[content_id] if one.document not in matched]
        tier = min((one.tier for one in same), default=None)
        best = [one for one in same if one.tier is tier]
        if len(pages) == 1 and len(best) == 1 and pages[0].size >= MIN_MATCH_CHARS:
            add_match(pages[0], best[0].document, best[0].url)

    for one in sorted(former, key=lambda one: one.born, reverse=True):  # the newest first
        if one.tier is not MatchTier.LOST and one.document not in matched and one.url in free:
            add_match(free[one.url], one.document, one.url)
    return matches


def pair_by_path_key(
    path_key: Callable[[str], str], new_pages: Iterable[NewPage], lost: Iterable[FormerDocument]
) -> list[tuple[NewPage, FormerDocument]]:
    """Pair new pages with lost documents that have the same key, where exactly one of each has it (rule 5)."""
    former_by_key = _by_key((path_key(one.url), one) for one in lost)
    pages_by_key = _by_key((path_key(page.url), page) for page in new_pages)
    pairs = ((pages, former_by_key[key]) for key, pages in pages_by_key.items() if key in former_by_key)
    return [(pages[0], former[0]) for pages, former in pairs if len(pages) == 1 and len(former) == 1]


def normalized_path(url: str) -> str:
    """Return a key that is equal for paths that some file systems treat as one: case and composition are ignored."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", unquote(url)).casefold())


def path_without_suffix(url: str) -> str:
    """Return a key that is equal for paths that differ only in their suffix, such as ``.md`` and ``.rst``."""
    folder, _, name = normalized_path(url).rpartition("/")
    return f"{folder}/{name.rpartition('.')[0] or name}"


def file_name(url: str) -> str:
    """Return a key that is equal for files of the same name in any folder."""
    return normalized_path(url).rpartition("/")[2]


PATH_KEYS = (normalized_path, path_without_suffix, file_name)


def is_similar(one: str, other: str) -> bool:
    """Whether two texts have at least half of their word trigrams in common."""
    trigrams, others = _count_trigrams(one), _count_trigrams(other)
    return 2 * (trigrams & others).total() >= (trigrams.total() + others.total()) * MIN_SIMILARITY > 0


def _count_trigrams(text: str) -> Counter[tuple[str, ...]]:
    words = text[:MAX_COMPARED_CHARS].split()
    return Counter(zip(words, words[1:], words[2:], strict=False)) if len(words) > 3 else Counter([tuple(words)])


T = TypeVar("T", NewPage, FormerDocument)


def _by_key(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    grouped: defaultdict[str, list[T]] = defaultdict(list)
    for key, one in pairs:
        grouped[key].append(one)
    return grouped


def _by_content(items: Iterable[T]) -> defaultdict[int, list[T]]:
    grouped: defaultdict[int, list[T]] = defaultdict(list)
    for one in items:
        grouped[one.content_id].append(one)
    return grouped
