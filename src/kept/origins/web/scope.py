"""Which links lead to pages of a source. Asked for every link of every page, so it answers from memory where it can.

    1. within     below the root's folder, on its host, or below any of a list of prefixes
    2. type       nothing that ends like an image, an archive, a font …
    3. patterns   include and exclude, over the path
    4. traps      paths that repeat themselves, session ids, calendars and query variants without end

A root ``https://host/docs`` that does not look like a file is a folder: its source is what lies below ``/docs/``.
A source of listed pages has exactly these.
Sites move to https, and answer to their name with and without www: such twins of a prefix count as the same.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator
from fnmatch import translate
from functools import lru_cache
from urllib.parse import unquote

from kept.errors import WrongCall
from kept.model.nouns import dataclass
from kept.model.source import Scope
from kept.model.url import resolve
from kept.origins.web.addresses import is_literal
from kept.origins.web.traps import Shape, is_plain, shape_of, why_trap

_REMEMBERED = 65_536  # links
_SHAPES = 20_000

_ENDINGS = (
    # pictures
    "avif bmp cur dia drawio eps gif heic ico jpeg jpg jxl png ps psd svg svgz tif tiff webp wmf xcf "
    # sound and film
    "aac aiff avi flac flv m3u8 m4a m4v mid mkv mov mp3 mp4 mpeg mpg oga ogg ogv opus wav weba webm wma wmv "
    # archives and programs
    "7z apk appimage bin br bz2 cab class crx deb dll dmg egg exe gem gz iso jar lz lzma msi nupkg o pkg pyc rar "
    "rpm snap so tar tbz tgz txz vsix war wasm whl xpi xz z zip zst "
    # what pages are made of
    "css eot js map mjs otf ttf woff woff2 "
    # data
    "asc crt csv db der doc ics key parquet pem ppt sha1 sha256 sha512 sig sqlite sqlite3 sum torrent tsv xls xlsb"
)
NOT_PAGES = frozenset(_ENDINGS.split())

OUTSIDE = "outside the source's scope"
LEFT_OUT = "left out by the source's patterns"
WRONG_TYPE = "not a page, by its name"
COPY = "a copy of the whole site in one file"
TOO_MANY = "one of endlessly many variants of a page"
BY_SETTINGS = frozenset({OUTSIDE, LEFT_OUT})

_WHOLE = re.compile(r"llms-(?:full|medium|small|ctx|ctx-full)\.(?:txt|md)")  # but it may be the root itself
_FILE = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,5}\Z")


@dataclass(frozen=True, slots=True)
class _Look:
    """What one URL says by itself."""

    reason: str | None = None
    shape: Shape | None = None  # the family of variants it belongs to


_FINE, _OUTSIDE, _WRONG_TYPE, _LEFT_OUT, _COPY = map(_Look, (None, OUTSIDE, WRONG_TYPE, LEFT_OUT, COPY))


class WebScope:
    """The rule of one source. ``why_not`` also counts variants; ``refusal`` depends on the URL alone."""

    def __init__(self, root: str, scope: Scope, *, this_year: int) -> None:
        self._this_year = this_year
        self._folder = folder_of(root)
        wanted = () if scope.pages else _prefixes(root, scope)
        prefixes = list(dict.fromkeys(twin for prefix in wanted for twin in _twins(prefix)))
        self._starts = tuple(prefix for prefix in prefixes if prefix.endswith("/"))
        named = [*scope.pages, *(f"{page}/" for page in scope.pages)] or [root]  # a site may add the slash itself
        self._exact = frozenset(prefix.rstrip("/") for prefix in self._starts) | frozenset(
            twin for page in named for twin in _twins(page)
        )
        self._include = _compiled(scope.include)
        self._exclude = _compiled(scope.exclude)
        self._look = lru_cache(maxsize=_REMEMBERED)(self._look_at)
        self._variants: OrderedDict[str, set[int]] = OrderedDict()

    def refusal(self, url: str) -> str | None:
        """Why a URL can be no page of this source; None: it can."""
        return self._look(url).reason

    def admits(self, url: str) -> bool:
        """Whether a link to it joins the frontier."""
        look = self._look(url)
        return look is _FINE or (look.reason is None and self._has_room(url, look.shape))

    def why_not(self, url: str) -> str | None:
        """Why a link to it does not join the frontier; None: it does."""
        return self._look(url).reason or (None if self.admits(url) else TOO_MANY)

    def _look_at(self, url: str) -> _Look:
        if url in self._exact:
            return _FINE
        page = url.partition("#")[0]  # a route belongs to where its page belongs
        if not page.startswith(self._starts) and page not in self._exact:
            return _OUTSIDE
        path = url.partition("?")[0]
        name = path[path.rfind("/") + 1 :]
        if "." in name and name.rpartition(".")[2].lower() in NOT_PAGES:
            return _WRONG_TYPE
        if _WHOLE.fullmatch(name):
            return _COPY
        if (self._include or self._exclude) and not self._matches(url, path):
            return _LEFT_OUT
        if is_plain(url):
            return _FINE
        if reason := why_trap(url, this_year=self._this_year):
            return _Look(reason)
        shape = shape_of(url)
        return _Look(None, shape) if shape else _FINE

    def _matches(self, url: str, path: str) -> bool:
        spellings = _spellings(self._folder, path) | (_spellings(self._folder, url) if url != path else set())
        if self._include and not any(map(self._include.match, spellings)):
            return False
        return not (self._exclude and any(map(self._exclude.match, spellings)))

    def _has_room(self, url: str, shape: Shape | None) -> bool:
        if shape is None:
            return True
        seen = self._variants.setdefault(shape.family, set())
        variant = hash(url)
        if variant in seen:
            return True
        if len(seen) >= shape.most:
            return False
        seen.add(variant)
        if len(self._variants) > _SHAPES:
            self._variants.popitem(last=False)
        return True


def origin_of(url: str) -> str:
    """``https://host`` or ``https://host:port``, of a canonical URL."""
    return url[: url.index("/", 8)]


def folder_of(root: str) -> str:
    """The folder that a root stands for: itself, unless its last part looks like a file."""
    path = root.partition("?")[0]
    head, _, name = path.rpartition("/")
    if not name:
        return path
    return f"{head}/" if _FILE.search(name) else f"{path}/"


def _prefixes(root: str, scope: Scope) -> Iterator[str]:
    for within in scope.within or ("folder",):
        if within == "folder":
            yield folder_of(root)
        elif within == "host":
            yield root[: root.index("/", 8) + 1]
        elif (prefix := resolve(within, root)) and prefix.startswith("http"):
            yield folder_of(prefix)
        else:
            raise WrongCall(f"Expected 'folder', 'host' or the beginning of a URL as a scope, found {within!r}.")


def _twins(url: str) -> Iterator[str]:
    """The URL, on https as well, and with and without www."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    hosts = [authority]
    if "." in authority and ":" not in authority and not is_literal(authority):
        hosts.append(authority[4:] if authority.startswith("www.") else f"www.{authority}")
    for host in hosts:
        yield f"{scheme}://{host}/{path}"
        if scheme == "http" and ":" not in host:
            yield f"https://{host}/{path}"


def _compiled(globs: tuple[str, ...]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(translate, globs))) if globs else None


def _spellings(folder: str, url: str) -> set[str]:
    """What a pattern may mean by a URL: all of it, its path, its path below the root's folder."""
    url = unquote(url)
    path = url[url.find("/", 8) :]
    return {url, path, url.removeprefix(folder) if url.startswith(folder) else path.lstrip("/")}
