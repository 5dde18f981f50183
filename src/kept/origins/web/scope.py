"""Decides which links lead to pages of a source. Called for every link of every page, so verdicts are cached.

    1. within     below the root's folder, on its host, or below one of a list of prefixes
    2. type       no file extension of an image, an archive, a font …
    3. patterns   include and exclude, on the path
    4. traps      repeated paths, session ids, too many parameters; unless the source's settings lift them

A link to a trap joins the frontier nevertheless, where it is refused without a request: so that the ledger has it.

A root ``https://host/docs`` that does not look like a file is a folder: its source is everything below ``/docs/``.
A source of listed pages has exactly these.
Sites move to https, and serve their host with and without www: such equivalent prefixes count as the same.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from urllib.parse import unquote

from kept.errors import InvalidInput
from kept.model.frontier import UrlFamily
from kept.model.source import Limits, Scope
from kept.model.url import resolve_link
from kept.origins.web.http.public_addresses import is_ip_address
from kept.origins.web.traps import find_url_family, is_plain, why_trap

_CACHED_URLS = 65_536
DEFAULT_LIMITS = Limits()

_EXTENSIONS = (
    # pictures
    "avif bmp cur dia drawio eps gif heic ico jpeg jpg jxl png ps psd svg svgz tif tiff webp wmf xcf "
    # sound and film
    "aac aiff avi flac flv m3u8 m4a m4v mid mkv mov mp3 mp4 mpeg mpg oga ogg ogv opus wav weba webm wma wmv "
    # archives and programs
    "7z apk appimage bin br bz2 cab class crx deb dll dmg egg exe gem gz iso jar lz lzma msi nupkg o pkg pyc rar "
    "rpm snap so tar tbz tgz txz vsix war wasm whl xpi xz z zip zst "
    # assets of pages
    "css eot js map mjs otf ttf woff woff2 "
    # data
    "asc crt csv db der doc ics key parquet pem ppt sha1 sha256 sha512 sig sqlite sqlite3 sum torrent tsv xls xlsb"
)
NON_PAGE_EXTENSIONS = frozenset(_EXTENSIONS.split())

OUT_OF_SCOPE = "outside the source's scope"
EXCLUDED_BY_PATTERN = "left out by the source's patterns"
WRONG_TYPE = "not a page, by its name"
WHOLE_SITE_COPY = "a copy of the whole site in one file"
SETTINGS_REASONS = frozenset({OUT_OF_SCOPE, EXCLUDED_BY_PATTERN})

_WHOLE_SITE_FILE = re.compile(r"llms-(?:full|medium|small|ctx|ctx-full)\.(?:txt|md)")  # but it may be the root itself
_FILE_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,5}\Z")


@dataclass(frozen=True, slots=True)
class _UrlVerdict:
    """The verdict on a URL by itself."""

    reason: str | None = None
    family: UrlFamily | None = None
    is_trap: bool = False


_ALLOWED_VERDICT, _OUT_OF_SCOPE_VERDICT, _WRONG_TYPE_VERDICT, _EXCLUDED_VERDICT, _COPY_VERDICT = map(
    _UrlVerdict, (None, OUT_OF_SCOPE, WRONG_TYPE, EXCLUDED_BY_PATTERN, WHOLE_SITE_COPY)
)


class WebScope:
    """The scope of one source."""

    def __init__(self, root: str, scope: Scope, limits: Limits = DEFAULT_LIMITS) -> None:
        self._no_traps = limits.no_traps
        self._not_traps = _compile_globs(limits.not_traps)
        self._folder = folder_of(root)
        base_prefixes = () if scope.pages else _scope_prefixes(root, scope)
        prefixes = list(dict.fromkeys(url for prefix in base_prefixes for url in _equivalent_urls(prefix)))
        self._prefixes = tuple(prefix for prefix in prefixes if prefix.endswith("/"))
        pages = [*scope.pages, *(f"{page}/" for page in scope.pages)] or [root]  # a site may add the slash itself
        self._exact = frozenset(prefix.rstrip("/") for prefix in self._prefixes) | frozenset(
            url for page in pages for url in _equivalent_urls(page)
        )
        self._include = _compile_globs(scope.include)
        self._exclude = _compile_globs(scope.exclude)
        self._verdict = lru_cache(maxsize=_CACHED_URLS)(self._judge_url)

    def why_excluded(self, url: str) -> str | None:
        """Return why a URL cannot be a page of this source; None when it can."""
        return self._verdict(url).reason

    def is_trap(self, url: str) -> bool:
        """Return whether a URL is excluded because it is a trap."""
        return self._verdict(url).is_trap

    def admits(self, url: str) -> bool:
        """Return whether a link to this URL joins the frontier. A trap does, and is refused there."""
        verdict = self._verdict(url)
        return verdict is _ALLOWED_VERDICT or verdict.reason is None or verdict.is_trap

    def find_family(self, url: str) -> UrlFamily | None:
        """Return the family of a URL that may be one of endlessly many."""
        return self._verdict(url).family

    def _judge_url(self, url: str) -> _UrlVerdict:
        if url in self._exact:
            return _ALLOWED_VERDICT
        page = url.partition("#")[0]  # a route has the scope of its page
        if not page.startswith(self._prefixes) and page not in self._exact:
            return _OUT_OF_SCOPE_VERDICT
        path = url.partition("?")[0]
        name = path[path.rfind("/") + 1 :]
        if "." in name and name.rpartition(".")[2].lower() in NON_PAGE_EXTENSIONS:
            return _WRONG_TYPE_VERDICT
        if _WHOLE_SITE_FILE.fullmatch(name):
            return _COPY_VERDICT
        if (self._include or self._exclude) and not self._matches_patterns(url, path):
            return _EXCLUDED_VERDICT
        if self._no_traps or is_plain(url) or (self._not_traps and self._matches(self._not_traps, url, path)):
            return _ALLOWED_VERDICT
        if reason := why_trap(url):
            return _UrlVerdict(reason, is_trap=True)
        family = find_url_family(url)
        return _UrlVerdict(None, family) if family else _ALLOWED_VERDICT

    def _matches_patterns(self, url: str, path: str) -> bool:
        if self._include and not self._matches(self._include, url, path):
            return False
        return not (self._exclude and self._matches(self._exclude, url, path))

    def _matches(self, pattern: re.Pattern[str], url: str, path: str) -> bool:
        """Return whether a pattern matches the URL or its path, with or without its query."""
        spellings = _pattern_spellings(self._folder, path) | (
            _pattern_spellings(self._folder, url) if url != path else set()
        )
        return any(map(pattern.match, spellings))


def origin_of(url: str) -> str:
    """Return ``https://host`` or ``https://host:port`` of a canonical URL."""
    return url[: url.index("/", 8)]


def folder_of(root: str) -> str:
    """Return the folder that a root stands for: itself, unless its last part looks like a file."""
    path = root.partition("?")[0]
    head, _, name = path.rpartition("/")
    if not name:
        return path
    return f"{head}/" if _FILE_EXTENSION.search(name) else f"{path}/"


def _scope_prefixes(root: str, scope: Scope) -> Iterator[str]:
    for within in scope.within or ("folder",):
        if within == "folder":
            yield folder_of(root)
        elif within == "host":
            yield root[: root.index("/", 8) + 1]
        elif (prefix := resolve_link(within, root)) and prefix.startswith("http"):
            yield folder_of(prefix)
        else:
            raise InvalidInput(f"Expected 'folder', 'host' or the beginning of a URL as a scope, found {within!r}.")


def _equivalent_urls(url: str) -> Iterator[str]:
    """Yield the URL with and without www, and each also with https."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    hosts = [authority]
    if "." in authority and ":" not in authority and not is_ip_address(authority):
        hosts.append(authority[4:] if authority.startswith("www.") else f"www.{authority}")
    for host in hosts:
        yield f"{scheme}://{host}/{path}"
        if scheme == "http" and ":" not in host:
            yield f"https://{host}/{path}"


def _compile_globs(globs: tuple[str, ...]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(translate, globs))) if globs else None


def _pattern_spellings(folder: str, url: str) -> set[str]:
    """Return what a pattern may match: the whole URL, its path, or its path below the root's folder."""
    url = unquote(url)
    path = url[url.find("/", 8) :]
    return {url, path, url.removeprefix(folder) if url.startswith(folder) else path.lstrip("/")}
