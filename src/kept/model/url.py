"""The one spelling under which Kept knows a URL, and the way from a page's link to it.

A document is found again by its URL, so two spellings of one address must be one string, and one string must never
stand for two addresses. What is safe to unify is unified; what a server may tell apart is left as it came.

    canonical     any URL                    -> its one spelling, or None
    resolve       a link and its page        -> the canonical URL it leads to, or None
    resolve_all   all the links of a page    -> the canonical URLs they lead to, each once, in order
    fragment · with_fragment                    the part after '#', which canonical URLs never have
    canonical_route · with_anchor               the same for sites whose pages differ in nothing else ('#/guide')
    file_url · file_path                        files on this machine, whatever bytes their names are made of

Parsing is the browsers' (the WHATWG URL Standard, by can_ada); docs/decisions/0001-canonical-urls.md says why, and
what the rules on top of it cost.
"""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import cast
from urllib.parse import quote, unquote, unquote_to_bytes

import can_ada

# Characters in the longest canonical URL. Longer ones are mostly crawler traps, and too long for a database's index.
MAX_URL_LENGTH = 2_048

# Query parameters that say where a visitor came from, never what the page shows. Compared in lower case.
TRACKING_PREFIXES = ("utm_", "hsa_", "mtm_", "piwik_")
TRACKING_PARAMETERS = frozenset({
    "_branch_match_id", "_ga", "_gl", "_hsenc", "_hsmi", "_openstat", "__hsfp", "__hssc", "__hstc", "dclid", "epik",
    "fbclid", "gad_campaignid", "gad_source", "gbraid", "gclid", "gclsrc", "hsctatracking", "igsh", "igshid",
    "irclickid", "li_fat_id", "mc_cid", "mc_eid", "mkt_tok", "ml_subscriber", "ml_subscriber_hash", "msclkid",
    "oly_anon_id", "oly_enc_id", "pk_campaign", "pk_cid", "pk_content", "pk_keyword", "pk_kwd", "pk_medium",
    "pk_source", "rb_clickid", "s_kwcid", "sccid", "srsltid", "ttclid", "twclid", "vero_conv", "vero_id", "wbraid",
    "wickedid", "yclid", "ymclid", "ysclid",
})  # fmt: skip


# How the files of packages are called: 'npm:/left-pad/README.md'. Such URLs are Kept's own; no page links to them.
PACKAGE_SCHEMES = frozenset({"npm:", "pypi:"})

# ── One spelling ─────────────────────────────────────────────────────────────────────────────────────────────────────


def canonicalize_url(url: str) -> str | None:
    """The one spelling of an http, https or file URL, or a package's; None for anything else, and for what cannot be.

    canonical(canonical(x)) == canonical(x). The result is ASCII, at most LONGEST characters, and has neither
    fragment nor credentials.
    """
    if _is_already_canonical(url):
        return url
    parsed = _parse(url)
    return _serialize(parsed) if parsed else None


# Every string this matches (and that has no '/.' in it, see _is_plain) is its own canonical form: most URLs on most
# pages are, and asking costs less than parsing. It is narrower than it could be where the standard has traps: hosts
# with a label in 'x…' could be invalid punycode, and a last label that begins with a digit could be an IPv4 address.
_SAFE = "A-Za-z0-9._~!$&'()*+,;=:@/-"
_ALREADY_CANONICAL = re.compile(
    r"https?://(?=[^/]{1,253}/)"
    rf"(?:[a-wyz0-9_-][a-z0-9_-]{{0,62}}\.)*[a-wyz][a-z0-9_-]{{0,62}}/[{_SAFE}]*"
)

# What needs no more than a look at its query, once the parser has settled dots, punycode and addresses. Escapes may be
# in it where they are right: capital letters, and no unreserved character.
_CANONICAL_ESCAPE = "%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|[46]0|5[B-E]|7[B-DF])"
_CANONICAL_BUT_QUERY = re.compile(
    r"(https?://(?=[^/]{1,253}/)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*(?::[0-9]{1,5})?"
    rf"/[{_SAFE}]*(?:{_CANONICAL_ESCAPE}[{_SAFE}]*)*)(?:\?([?{_SAFE}]*(?:{_CANONICAL_ESCAPE}[?{_SAFE}]*)*))?"
)

# The standard also allows hosts such as '{host}', '$HOST' or '*.example.com'. No such machine answers, and manuals
# are full of them. Hosts beyond DNS's lengths make resolvers raise.
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*|\[[0-9a-f:]+\]")

_NEEDS_NORMALIZING = re.compile(rf"%(?:[0-9A-Fa-f]{{2}})?|[^?{_SAFE}]")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

_MAX_INPUT_LENGTH = (
    8 * MAX_URL_LENGTH
)  # escapes, dots and tracking may shrink, but not everything is worth a parser's time


def _is_already_canonical(url: str) -> bool:
    return len(url) <= MAX_URL_LENGTH and "/." not in url and _ALREADY_CANONICAL.fullmatch(url) is not None


def _parse(text: str, base: can_ada.URL | None = None) -> can_ada.URL | None:
    if len(text) > _MAX_INPUT_LENGTH:
        return None
    try:
        url = can_ada.parse(text) if base is None else base + text
    except ValueError:
        return None
    except TypeError:  # what can_ada says to lone surrogates
        return _parse(_replace_surrogates(text), base)
    # The Ada in can_ada 3.0 may leave '..' in a path that has a name like '.git' before it (ada-url/ada#935). To the
    # standard '%2E' is as good as '.', and Ada reads paths with escapes in another way, which is right.
    return can_ada.parse(href.replace("/.", "/%2E")) if "/." in (href := url.href) else url


def _serialize(url: can_ada.URL) -> str | None:
    spelled: str | None = None
    if settled := _CANONICAL_BUT_QUERY.fullmatch(url.href.partition("#")[0]):
        spelled = _add_query(settled[1], settled[2])
    elif url.protocol in ("http:", "https:"):
        spelled = _serialize_web(url)
    elif url.protocol == "file:":
        spelled = _serialize_file(url)
    elif url.protocol in PACKAGE_SCHEMES and not url.host and url.pathname.startswith("/"):
        spelled = url.protocol + _NEEDS_NORMALIZING.sub(_normalize_escape, url.pathname)
    return spelled if spelled and len(spelled) <= MAX_URL_LENGTH else None


def _serialize_web(url: can_ada.URL) -> str | None:
    host = url.hostname.removesuffix(".")
    if not _HOST.fullmatch(host):
        return None
    authority = f"{host}:{url.port}" if url.port else host
    path = _NEEDS_NORMALIZING.sub(_normalize_escape, url.pathname)
    query = _NEEDS_NORMALIZING.sub(_normalize_escape, url.search[1:])
    return _add_query(f"{url.protocol}//{authority}{path}", query)


def _normalize_escape(match: re.Match[str]) -> str:
    found = match[0]
    if len(found) == 1:
        return f"%{ord(found):02X}"
    character = chr(int(found[1:], 16))
    return character if character in _UNRESERVED else found.upper()


def _add_query(url: str, query: str | None) -> str:
    if not query:
        return url
    kept = "&".join([parameter for parameter in query.split("&") if not _is_tracking(parameter)])
    return f"{url}?{kept}" if kept else url


def _is_tracking(parameter: str) -> bool:
    name = parameter.partition("=")[0].lower()
    return name in TRACKING_PARAMETERS or name.startswith(TRACKING_PREFIXES)


def _replace_surrogates(text: str) -> str:
    """The text as the URL Standard reads it: U+FFFD for every lone surrogate."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


# ── From a link to a URL ─────────────────────────────────────────────────────────────────────────────────────────────


def resolve_link(href: str, base: str) -> str | None:
    """The canonical URL a link leads to from `base`, its page's URL (or its <base>). A fragment alone: the page itself.

    None for an empty link; for mailto:, javascript:, data: and all else that canonical() refuses; when it refuses
    `base`; and for a link from the web to a local file.
    """
    page = canonicalize_url(base)
    return _resolve_from_page(href, page) if page else None


def resolve_links(hrefs: Iterable[str], base: str, *, keep_routes: bool = False) -> list[str]:
    """Where all the links of a page lead: resolve() of each, without the Nones, each URL once, in the page's order.

    With `routes`, links to a route lead there instead of to its page.
    """
    if keep_routes:
        return list(dict.fromkeys(with_route(url, href) for href in hrefs if (url := resolve_link(href, base))))
    page = canonicalize_url(base)
    if page is None:
        return []
    # Without their fragments far fewer links are left. A fragment alone leads to the page. A blank before the '#' stays
    # where it is: as the last character it would be stripped.
    links = [
        href if "#" not in href else link if (link := href.partition("#")[0])[-1:] > " " else href if link else page
        for href in dict.fromkeys(hrefs)
    ]
    folder = _folder_link_cache(_parent_folder(page))
    found = dict.fromkeys(map(folder.__getitem__, dict.fromkeys(links)))
    if _DEPENDS_ON_PAGE in found:
        found = dict.fromkeys([folder[link] or _resolve_from_page(link, page) for link in links])
    found.pop(None, None)
    if len(folder) > _LINK_CACHE_SIZE:
        folder.clear()
    return cast(list[str], list(found))


_BLANKS = "".join(map(chr, range(0x21)))  # C0 controls and space: what the standard strips from both ends
_DEPENDS_ON_PAGE = ""
_FOLDER_CACHE_SIZE = 64  # some 30 MB when all are full
_LINK_CACHE_SIZE = 2_048


def _resolve_from_page(href: str, page: str) -> str | None:
    if href[:1] <= " " and not href.strip(_BLANKS):
        return None
    url = _parse(href, _parse_cached(page))
    spelled = _serialize(url) if url else None
    if spelled and not spelled.startswith("http") and not page.startswith(spelled[: spelled.index(":")]):
        return None  # neither a file nor a package is where the web leads
    return spelled


@lru_cache(maxsize=_FOLDER_CACHE_SIZE)
def _parse_cached(page: str) -> can_ada.URL:
    return can_ada.parse(page)


atexit.register(_parse_cached.cache_clear)  # one that outlives the interpreter is complained about, on standard error


class _FolderLinkCache(dict[str, str | None]):
    """Where links lead from every page of one folder: a canonical URL, None, or _ASK_PAGE where each page differs.

    The pages of a folder share their navigation, so most of a page's links were followed before, from a neighbour.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def __missing__(self, href: str) -> str | None:
        if not href.isprintable() or href[:1] in " ?#" or _is_scheme_without_authority(href):
            return _DEPENDS_ON_PAGE
        url = self[href] = href if _is_already_canonical(href) else _resolve_from_page(href, self.url)
        return url


_folder_link_cache = lru_cache(maxsize=_FOLDER_CACHE_SIZE)(_FolderLinkCache)


def _is_scheme_without_authority(href: str) -> bool:
    """Whether it may be a link like 'https:?page=2' or 'https:next', which the standard reads as relative."""
    return href[:4].lower() in ("http", "file") and not href.startswith(("https://", "http://", "file://"))


def _parent_folder(page: str) -> str:
    path = page.partition("?")[0]
    end = path.rindex("/") + 1
    # From 'file:///C:', and from there alone, 'a' leads to 'file:///C:/a' rather than to 'file:///a'.
    return page if end == len("file:///") and page.startswith("file:") else path[:end]


# ── Fragments ────────────────────────────────────────────────────────────────────────────────────────────────────────

_URL_SAFE = "/!$&'()*+,;=:@"
_UNRESERVED_NAME = re.compile("[A-Za-z0-9._~-]+")  # as most are: spelled as they are, and quote() would take its time


def get_fragment(url: str) -> str:
    """The anchor a URL or a link points to, decoded; '' when it has none."""
    anchor = url.strip(_BLANKS).partition("#")[2]
    return unquote(re.sub("[\t\n\r]", "", anchor))


def with_fragment(url: str, anchor: str) -> str:
    """The URL of an anchor on a page; fragment() gives the anchor back. Any fragment it had is replaced."""
    page = url.partition("#")[0]
    if _UNRESERVED_NAME.fullmatch(anchor):
        return f"{page}#{anchor}"
    return f"{page}#{quote(_replace_surrogates(anchor), safe=_URL_SAFE + '?')}" if anchor else page


# ── Routes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

# Some sites are one page whose scripts show what the fragment names: 'https://e.org/#/guide'. Only who has run the
# scripts knows that it is such a site, so nothing else in here keeps a fragment. A heading on a route is named the way
# docsify does, by an 'id' behind it, which never begins with a digit there ('#/guide?id=install').
_ROUTE = re.compile(r"!?/[^#]*")
_ROUTE_ANCHOR = re.compile(r"(?:[?&]id=([^0-9&][^&]*))+\Z")


def canonicalize_route_url(url: str) -> str | None:
    """canonical(), with the route if the fragment is one."""
    page = canonicalize_url(url)
    return with_route(page, url) if page else None


def with_route(page: str, link: str) -> str:
    """The canonical URL of the route that a link to this page names; without one, the page's. '#/' is the page."""
    if "#" not in link or not page.startswith("http"):
        return page
    found = _ROUTE.match(re.sub("[\t\n\r]", "", link.strip(_BLANKS).partition("#")[2]))
    if found is None:
        return page
    quoted = quote(_replace_surrogates(found[0]), safe=_URL_SAFE + "?%")
    route = _ROUTE_ANCHOR.sub("", _NEEDS_NORMALIZING.sub(_normalize_escape, quoted))
    url = f"{page}#{route}"
    return page if route in ("/", "!/") or len(url) > MAX_URL_LENGTH else url


def with_anchor(url: str, anchor: str) -> str:
    """The URL of an anchor on a page, or on a route, as a browser would open it."""
    route = url.partition("#")[2]
    if not route:
        return with_fragment(url, anchor)
    if not anchor or anchor[0].isdigit():
        return url
    return f"{url}{'&' if '?' in route else '?'}id={quote(_replace_surrogates(anchor), safe='')}"


def get_anchor(url: str) -> str:
    """The anchor that with_anchor() gave a URL that may be a route's; '' when it has none."""
    said = url.strip(_BLANKS).partition("#")[2]
    if not _ROUTE.match(said):
        return get_fragment(url)
    found = _ROUTE_ANCHOR.search(said)
    return unquote(found[1]) if found else ""


# ── Files ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_WINDOWS = os.name == "nt"
_FORBIDDEN_ESCAPE = re.compile("%(?:00|2[Ff])")
_DOT_SEGMENT = re.compile(rb"(?:\A|/)\.{1,2}(?:/|\Z)")


def file_url(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """The canonical URL of a file or folder, whatever bytes its name is made of; file_path() gives the path back.

    ValueError unless the path is absolute and without '.' and '..' (and NUL). Longer than LONGEST is possible: such a
    URL is right, but canonical() refuses it.
    """
    raw = os.fsencode(path)
    if _WINDOWS:
        raw = raw.replace(b"\\", b"/")
        raw = b"/" + raw if raw[1:2] == b":" else raw
    if not _is_absolute_path(raw):
        raise ValueError(f"Expected an absolute path without '.', '..' and NUL, found {path!r}. Resolve it first.")
    return _quote_file(raw)


def file_path(url: str) -> str:
    """The path behind a canonical file URL, names that are not UTF-8 as os.fsdecode() gives them. Else ValueError."""
    raw = unquote_to_bytes(url.removeprefix("file://"))
    if not _is_absolute_path(raw) or _quote_file(raw) != url:
        raise ValueError(f"Expected the canonical URL of a file, as file_url() gives it, found {url!r}.")
    if _WINDOWS and raw[2:3] == b":":
        raw = raw[1:]
    return os.fsdecode(raw)


def quote_file_name(name: str) -> str:
    """How the name of a file is spelled in its canonical URL."""
    return name if _UNRESERVED_NAME.fullmatch(name) else quote(os.fsencode(name), safe=_URL_SAFE)


def _serialize_file(url: can_ada.URL) -> str | None:
    # A file has no reserved characters: its name is its bytes, so every escape is undone and made again in one way.
    # A query means nothing to it. No name has a NUL or a slash in it: an escaped one is an attempt to get elsewhere.
    if url.hostname or _FORBIDDEN_ESCAPE.search(url.pathname):
        return None
    return _quote_file(unquote_to_bytes(url.pathname))


def _quote_file(path: bytes) -> str:
    return "file://" + quote(path, safe=_URL_SAFE)


def _is_absolute_path(path: bytes) -> bool:
    return path.startswith(b"/") and b"\0" not in path and not _DOT_SEGMENT.search(path)
