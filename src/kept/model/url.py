"""Canonical URLs, and the resolution of links to them.

A document is identified by its URL, so two spellings of one address must become one string, and one string must never
stand for two addresses. Differences that are safe to remove are removed; those that a server may see are kept.

    canonicalize_url    any URL                  -> its canonical form, or None
    resolve_link        a link and its page      -> the canonical URL it leads to, or None
    resolve_links       all links of a page      -> the canonical URLs they lead to, each once, in order
    get_fragment · with_fragment                    the part after '#', which canonical URLs never have
    canonicalize_route_url · with_anchor            the same for sites whose pages differ only in it ('#/guide')
    file_url · file_path                            local files, whatever bytes their names are made of

URLs are parsed as browsers do (the WHATWG URL Standard, by can_ada); docs/decisions/0001-canonical-urls.md gives the
reasons for the further rules.
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

# The longest canonical URL. Longer ones are mostly crawler traps, and too long for a database index.
MAX_URL_LENGTH = 2_048

# Query parameters that identify where a visitor came from and do not change the page. Compared in lower case.
TRACKING_PREFIXES = ("utm_", "hsa_", "mtm_", "piwik_")
TRACKING_PARAMETERS = frozenset({
    "_branch_match_id", "_ga", "_gl", "_hsenc", "_hsmi", "_openstat", "__hsfp", "__hssc", "__hstc", "dclid", "epik",
    "fbclid", "gad_campaignid", "gad_source", "gbraid", "gclid", "gclsrc", "hsctatracking", "igsh", "igshid",
    "irclickid", "li_fat_id", "mc_cid", "mc_eid", "mkt_tok", "ml_subscriber", "ml_subscriber_hash", "msclkid",
    "oly_anon_id", "oly_enc_id", "pk_campaign", "pk_cid", "pk_content", "pk_keyword", "pk_kwd", "pk_medium",
    "pk_source", "rb_clickid", "s_kwcid", "sccid", "srsltid", "ttclid", "twclid", "vero_conv", "vero_id", "wbraid",
    "wickedid", "yclid", "ymclid", "ysclid",
})  # fmt: skip


# URLs of files in packages: 'npm:/left-pad/README.md'. They are Kept's own; no page links to them.
PACKAGE_SCHEMES = frozenset({"npm:", "pypi:"})

# ── Canonical form ───────────────────────────────────────────────────────────────────────────────────────────────────


def canonicalize_url(url: str) -> str | None:
    """Return the canonical form of an http, https, file or package URL; None for anything else and invalid URLs.

    The function is idempotent. The result is ASCII, at most MAX_URL_LENGTH long, without fragment and credentials.
    """
    if _is_already_canonical(url):
        return url
    parsed = _parse(url)
    return _serialize(parsed) if parsed else None


# Every string that matches (and has no '/.' in it, see _is_already_canonical) is its own canonical form: most URLs are,
# and matching costs less than parsing. It is stricter than necessary where the standard has traps: hosts with a label
# in 'x…' could be invalid punycode, and a last label that begins with a digit could be an IPv4 address.
_SAFE = "A-Za-z0-9._~!$&'()*+,;=:@/-"
_ALREADY_CANONICAL = re.compile(
    r"https?://(?=[^/]{1,253}/)"
    rf"(?:[a-wyz0-9_-][a-z0-9_-]{{0,62}}\.)*[a-wyz][a-z0-9_-]{{0,62}}/[{_SAFE}]*"
)

# A parsed URL of which only the query may need work: the parser has handled dots, punycode and addresses. Escapes are
# allowed in canonical form: in capital letters, and not for unreserved characters.
_CANONICAL_ESCAPE = "%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|[46]0|5[B-E]|7[B-DF])"
_CANONICAL_BUT_QUERY = re.compile(
    r"(https?://(?=[^/]{1,253}/)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*(?::[0-9]{1,5})?"
    rf"/[{_SAFE}]*(?:{_CANONICAL_ESCAPE}[{_SAFE}]*)*)(?:\?([?{_SAFE}]*(?:{_CANONICAL_ESCAPE}[?{_SAFE}]*)*))?"
)

# The standard also allows hosts such as '{host}', '$HOST' or '*.example.com', which manuals are full of and which never
# exist. Hosts beyond DNS's lengths make resolvers raise.
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*|\[[0-9a-f:]+\]")

_NEEDS_NORMALIZING = re.compile(rf"%(?:[0-9A-Fa-f]{{2}})?|[^?{_SAFE}]")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

_MAX_INPUT_LENGTH = 8 * MAX_URL_LENGTH  # normalizing may shorten a URL, but longer ones are not worth parsing


def _is_already_canonical(url: str) -> bool:
    return len(url) <= MAX_URL_LENGTH and "/." not in url and _ALREADY_CANONICAL.fullmatch(url) is not None


def _parse(text: str, base: can_ada.URL | None = None) -> can_ada.URL | None:
    if len(text) > _MAX_INPUT_LENGTH:
        return None
    try:
        url = can_ada.parse(text) if base is None else base + text
    except ValueError:
        return None
    except TypeError:  # can_ada rejects lone surrogates
        return _parse(_replace_surrogates(text), base)
    # The Ada in can_ada 3.0 may leave '..' in a path that has a name like '.git' before it (ada-url/ada#935). In the
    # standard '%2E' equals '.', and Ada parses paths with escapes differently, which is correct.
    return can_ada.parse(href.replace("/.", "/%2E")) if "/." in (href := url.href) else url


def _serialize(url: can_ada.URL) -> str | None:
    canonical: str | None = None
    if match := _CANONICAL_BUT_QUERY.fullmatch(url.href.partition("#")[0]):
        canonical = _add_query(match[1], match[2])
    elif url.protocol in ("http:", "https:"):
        canonical = _serialize_web(url)
    elif url.protocol == "file:":
        canonical = _serialize_file(url)
    elif url.protocol in PACKAGE_SCHEMES and not url.host and url.pathname.startswith("/"):
        canonical = url.protocol + _NEEDS_NORMALIZING.sub(_normalize_escape, url.pathname)
    return canonical if canonical and len(canonical) <= MAX_URL_LENGTH else None


def _serialize_web(url: can_ada.URL) -> str | None:
    host = url.hostname.removesuffix(".")
    if not _HOST.fullmatch(host):
        return None
    authority = f"{host}:{url.port}" if url.port else host
    path = _NEEDS_NORMALIZING.sub(_normalize_escape, url.pathname)
    query = _NEEDS_NORMALIZING.sub(_normalize_escape, url.search[1:])
    return _add_query(f"{url.protocol}//{authority}{path}", query)


def _normalize_escape(match: re.Match[str]) -> str:
    text = match[0]
    if len(text) == 1:
        return f"%{ord(text):02X}"
    character = chr(int(text[1:], 16))
    return character if character in _UNRESERVED else text.upper()


def _add_query(url: str, query: str | None) -> str:
    if not query:
        return url
    kept = "&".join([parameter for parameter in query.split("&") if not _is_tracking(parameter)])
    return f"{url}?{kept}" if kept else url


def _is_tracking(parameter: str) -> bool:
    name = parameter.partition("=")[0].lower()
    return name in TRACKING_PARAMETERS or name.startswith(TRACKING_PREFIXES)


def _replace_surrogates(text: str) -> str:
    """Return the text with U+FFFD for every lone surrogate, as the URL Standard does."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


# ── Resolving links ──────────────────────────────────────────────────────────────────────────────────────────────────


def resolve_link(href: str, base: str) -> str | None:
    """Return the canonical URL that a link leads to from ``base``, its page's URL (or <base>).

    None for an empty link, for schemes without a canonical form (mailto:, javascript:, data: …), for an invalid
    ``base``, and for a link from the web to a local file. A fragment alone leads to the page itself.
    """
    page = canonicalize_url(base)
    return _resolve_from_page(href, page) if page else None


def resolve_links(hrefs: Iterable[str], base: str, *, keep_routes: bool = False) -> list[str]:
    """Return where the links of a page lead, each URL once, in page order; see ``resolve_link``.

    With ``keep_routes``, links to a route lead there instead of to its page.
    """
    if keep_routes:
        return list(dict.fromkeys(with_route(url, href) for href in hrefs if (url := resolve_link(href, base))))
    page = canonicalize_url(base)
    if page is None:
        return []
    # Without their fragments far fewer links are left. A fragment alone leads to the page. A link with a blank before
    # the '#' is left as it is: as the last character the blank would be stripped.
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


_BLANKS = "".join(map(chr, range(0x21)))  # C0 controls and space, which the standard strips from both ends
_DEPENDS_ON_PAGE = ""
_FOLDER_CACHE_SIZE = 64  # some 30 MB when all are full
_LINK_CACHE_SIZE = 2_048


def _resolve_from_page(href: str, page: str) -> str | None:
    if href[:1] <= " " and not href.strip(_BLANKS):
        return None
    url = _parse(href, _parse_cached(page))
    canonical = _serialize(url) if url else None
    if canonical and not canonical.startswith("http") and not page.startswith(canonical[: canonical.index(":")]):
        return None  # links on the web never lead to local files or packages
    return canonical


@lru_cache(maxsize=_FOLDER_CACHE_SIZE)
def _parse_cached(page: str) -> can_ada.URL:
    return can_ada.parse(page)


atexit.register(_parse_cached.cache_clear)  # objects that outlive the interpreter cause a warning on standard error


class _FolderLinkCache(dict[str, str | None]):
    """Resolved links of the pages in one folder: a canonical URL, None, or _DEPENDS_ON_PAGE.

    The pages of a folder share their navigation, so most links of a page were resolved before, for a neighbour.
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
    """Whether a link may be like 'https:?page=2' or 'https:next', which the standard treats as relative."""
    return href[:4].lower() in ("http", "file") and not href.startswith(("https://", "http://", "file://"))


def _parent_folder(page: str) -> str:
    path = page.partition("?")[0]
    end = path.rindex("/") + 1
    # From 'file:///C:', and from there alone, 'a' leads to 'file:///C:/a' rather than to 'file:///a'.
    return page if end == len("file:///") and page.startswith("file:") else path[:end]


# ── Fragments ────────────────────────────────────────────────────────────────────────────────────────────────────────

_URL_SAFE = "/!$&'()*+,;=:@"
_UNRESERVED_NAME = re.compile("[A-Za-z0-9._~-]+")  # most names: they need no quote(), which is slow


def get_fragment(url: str) -> str:
    """Return the decoded fragment of a URL or a link; '' if it has none."""
    anchor = url.strip(_BLANKS).partition("#")[2]
    return unquote(re.sub("[\t\n\r]", "", anchor))


def with_fragment(url: str, anchor: str) -> str:
    """Return the URL of an anchor on a page, in place of any other fragment. ``get_fragment`` is the inverse."""
    page = url.partition("#")[0]
    if _UNRESERVED_NAME.fullmatch(anchor):
        return f"{page}#{anchor}"
    return f"{page}#{quote(_replace_surrogates(anchor), safe=_URL_SAFE + '?')}" if anchor else page


# ── Routes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

# Some sites are one page whose scripts show what the fragment names: 'https://e.org/#/guide'. Only a browser that runs
# the scripts can tell, so nothing else in here keeps a fragment. A heading on a route is written as docsify does, as an
# 'id' after it, which never begins with a digit there ('#/guide?id=install').
_ROUTE = re.compile(r"!?/[^#]*")
_ROUTE_ANCHOR = re.compile(r"(?:[?&]id=([^0-9&][^&]*))+\Z")


def canonicalize_route_url(url: str) -> str | None:
    """Return the canonical form of a URL, with the route if its fragment is one."""
    page = canonicalize_url(url)
    return with_route(page, url) if page else None


def with_route(page: str, link: str) -> str:
    """Return the canonical URL of the route in a link to this page, or the page if it has none or is '#/'."""
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
    """Return the URL of an anchor on a page or on a route, as a browser opens it."""
    route = url.partition("#")[2]
    if not route:
        return with_fragment(url, anchor)
    if not anchor or anchor[0].isdigit():
        return url
    return f"{url}{'&' if '?' in route else '?'}id={quote(_replace_surrogates(anchor), safe='')}"


def get_anchor(url: str) -> str:
    """Return the anchor of a URL that may have a route; '' if it has none. The inverse of ``with_anchor``."""
    fragment = url.strip(_BLANKS).partition("#")[2]
    if not _ROUTE.match(fragment):
        return get_fragment(url)
    found = _ROUTE_ANCHOR.search(fragment)
    return unquote(found[1]) if found else ""


# ── Files ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_WINDOWS = os.name == "nt"
_FORBIDDEN_ESCAPE = re.compile("%(?:00|2[Ff])")
_DOT_SEGMENT = re.compile(rb"(?:\A|/)\.{1,2}(?:/|\Z)")


def file_url(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """Return the canonical URL of a file or folder, whatever bytes its name is made of. ``file_path`` is the inverse.

    Raises ValueError unless the path is absolute and without '.', '..' and NUL. The URL may be longer than
    MAX_URL_LENGTH, which ``canonicalize_url`` does not accept.
    """
    raw = os.fsencode(path)
    if _WINDOWS:
        raw = raw.replace(b"\\", b"/")
        raw = b"/" + raw if raw[1:2] == b":" else raw
    if not _is_absolute_path(raw):
        raise ValueError(f"Expected an absolute path without '.', '..' and NUL, found {path!r}. Resolve it first.")
    return _quote_file(raw)


def file_path(url: str) -> str:
    """Return the path of a canonical file URL, decoded as os.fsdecode() does. Raises ValueError for other URLs."""
    raw = unquote_to_bytes(url.removeprefix("file://"))
    if not _is_absolute_path(raw) or _quote_file(raw) != url:
        raise ValueError(f"Expected the canonical URL of a file, as file_url() gives it, found {url!r}.")
    if _WINDOWS and raw[2:3] == b":":
        raw = raw[1:]
    return os.fsdecode(raw)


def quote_file_name(name: str) -> str:
    """Return the name of a file as it is written in its canonical URL."""
    return name if _UNRESERVED_NAME.fullmatch(name) else quote(os.fsencode(name), safe=_URL_SAFE)


def _serialize_file(url: can_ada.URL) -> str | None:
    # File names have no reserved characters: they are bytes, so every escape is undone and made again in one way.
    # A query has no meaning here. No name has a NUL or a slash: an escaped one is an attempt at path traversal.
    if url.hostname or _FORBIDDEN_ESCAPE.search(url.pathname):
        return None
    return _quote_file(unquote_to_bytes(url.pathname))


def _quote_file(path: bytes) -> str:
    return "file://" + quote(path, safe=_URL_SAFE)


def _is_absolute_path(path: bytes) -> bool:
    return path.startswith(b"/") and b"\0" not in path and not _DOT_SEGMENT.search(path)
