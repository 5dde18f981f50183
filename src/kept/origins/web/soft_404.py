"""Detects responses with status 200 that are not pages: log-in forms and error pages ("soft 404"). Pure.

    is_login_form       a page that is little more than a password form
    is_login_redirect   the target of a redirect, by its name and its return parameter
    Soft404             the response of a site for a page that does not exist; equal responses are soft 404s

When in doubt it is a page. Only a page with the same words as the probe's, one by one, is a soft 404: with a large
template all pages are similar, and a short page is still a page.
"""

import re
from dataclasses import dataclass
from html import unescape
from urllib.parse import unquote

PROBE_NAME = "kept-asks-for-a-page-that-is-not-there"
LOGIN_REASON = "looks like a log-in page"
SOFT_404_REASON = "answers like a page that does not exist"

MAX_BYTES = 512 * 1024  # a larger response is taken for a page: it has content, and would take long to compare
_MAX_FORM_WORDS = 60
_MAX_LOGIN_PAGE_WORDS = 200
_SHELL_WORDS = 30

_PASSWORD_INPUT = re.compile(rb"(?i)<input\b[^<>]{0,2000}?\btype\s{0,9}=\s{0,9}[\"']?password\b")
_LOGIN_TEXT = re.compile(
    r"\b(?:log|sign)[\s-]?(?:in|on)\b|anmelde|einloggen|connexion|connecter|iniciar sesi|accedi\b|"
    r"ログイン|登录|登入|로그인|вход|войти",
    re.IGNORECASE,
)
_LOGIN_PATH = re.compile(
    r"/(?:(?:wp-)?(?:log|sign)[-_]?(?:in|on|up)|register|sso|saml2?|oauth2?|authori[sz]e|authenticate|auth)"
    r"(?:\.[a-z]{2,5})?(?:/[^/]{0,40})?/?\Z",
    re.IGNORECASE,
)
_RETURN_PARAMETER = re.compile(
    r"[?&](?:next|return\w*|redirect\w*|continue|goto|dest\w*|service|target|from|came_from|back|state|SAMLRequest)=",
    re.IGNORECASE,
)
_TITLE = re.compile(rb"(?i)<title[^<>]{0,200}>([^<]{0,1000})")
_HEADING = re.compile(r"(?i)<h[1-3][^<>]{0,500}>([^<]{0,200})")
_TEXTLESS_START = re.compile(r"(?i)<(?:script|style|template|svg)\b")
_TEXTLESS_END = re.compile(r"(?i)</(?:script|style|template|svg)\s{0,9}>")
_TAG = re.compile(r"<[^<>]*>")


def is_login_url(url: str) -> bool:
    """Return whether a URL's path is that of a log-in or registration page."""
    return _LOGIN_PATH.search(url.partition("?")[0]) is not None


def is_login_redirect(url: str, *, outside: bool) -> bool:
    """Return whether a redirect leads to a log-in page. A page of the source about log-in may have such a name too."""
    return is_login_url(url) and (outside or _RETURN_PARAMETER.search(url) is not None)


def is_login_form(body: bytes) -> bool:
    """Return whether a page is little more than a password form. Pages that also have a log-in box are pages."""
    if b"assword" not in body and b"PASSWORD" not in body:
        return False
    if len(body) > MAX_BYTES or not _PASSWORD_INPUT.search(body):
        return False
    text = _decoded(body)
    count = len(_words(text, ""))
    headings = " ".join([_title(body), *_HEADING.findall(text)])
    return count < _MAX_FORM_WORDS or (count < _MAX_LOGIN_PAGE_WORDS and _LOGIN_TEXT.search(headings) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Soft404:
    """The response of a site for a page that does not exist, if it is not a 404."""

    title: str = ""
    words: tuple[str, ...] = ()
    redirects_to: str | None = None

    @classmethod
    def from_page(cls, body: bytes, url: str) -> "Soft404 | None":
        """Return None for a page that scripts fill: before they run, every page looks like it."""
        words = _words(_decoded(body), url) if len(body) <= MAX_BYTES else ()
        if not words or (len(words) < _SHELL_WORDS and b"<script" in body):
            return None
        return cls(title=_title(body), words=words)

    @classmethod
    def from_redirect(cls, to: str | None) -> "Soft404 | None":
        """Return None for a redirect of every URL, such as to the same page in a language."""
        return None if to is None or PROBE_NAME in to else cls(redirects_to=to)

    def matches(self, body: bytes, url: str) -> bool:
        if not self.words or len(body) > MAX_BYTES or _title(body) != self.title:
            return False
        return _words(_decoded(body), url) == self.words


def _title(body: bytes) -> str:
    title = _TITLE.search(body, 0, 1 << 16)
    return " ".join(unescape(_decoded(title[1])).split()) if title else ""


def _decoded(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body.decode("latin-1")


def _words(text: str, url: str) -> tuple[str, ...]:
    """Return the visible words without numbers and without the page's own address, which error pages repeat."""
    first, *rest = text.split("<!--")
    text = first + " ".join(part.partition("-->")[2] for part in rest)
    first, *rest = _TEXTLESS_START.split(text)
    text = first + " ".join(_TEXTLESS_END.split(part, maxsplit=1)[-1] for part in rest)
    text = unescape(_TAG.sub(" ", text))
    path = url[url.find("/", 8) :] if url else ""
    for address in dict.fromkeys((url, path, path.lstrip("/"), path.rstrip("/").rpartition("/")[2])):
        for spelling in (address, unquote(address)) if len(address) > 3 else ():
            text = text.replace(spelling, " ")
    return tuple(word for word in re.findall(r"\w+", text.lower()) if not any(map(str.isdigit, word)))
