"""A site that changes in every possible way, chapter by chapter, and the expected documents after each.

    async with serving() as site:
        for number, chapter in CHAPTERS.items():
            site.turn(chapter)
            …                           # a crawl of site.root; then compare with state(number)

A page has one word that no other page has (``walker9a``: the first edition of the walker), and ``everywhere``. Its
links are in its navigation, so that a page with only other links has not changed.

TABLE has a line for each document: its name, its paths one after the other, and its state from which chapter on.
``b3'`` is its second edition (b), in its third version, at its second path ('). ``?`` it is missing and still shown,
``!`` it could not be read and is still shown, ``-3`` it is deleted after three versions.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from kept.model.source import Limits, Region, Scope, SourceSettings

TABLE = """
root        / /start.html                                 1 a1 · 40 a2'
edited      /edited.html                                  1 a1 · 3 b2 · 36 c3 · 38 -3 · 39 c4
weak        /weak.html                                    1 a1 · 3 b2 · 38 -2 · 39 b3
dated       /dated.html                                   1 a1 · 3 b2 · 38 -2 · 39 b3
unmarked    /unmarked.html                                1 a1 · 38 -1 · 39 a2
chromed     /chromed.html                                 1 a1
walker      /walker.html /walks/on.html /walker.html      1 a1 · 5 a2' · 35 b3''
wanderer    /wanderer.html /far/away.html                 1 a1 · 6 a2' · 44 -2'
wanderer    /copy/1.html                                  44 a1
wanderer    /copy/2.html                                  44 a1
gemini      /castor.html                                  1 a1 · 7 b2 · 38 -2 · 39 b3
gemini      /pollux.html                                  1 b1 · 7 a2 · 38 -2 · 39 a3
doomed      /doomed.html                                  1 a1 · 8 -1 · 12 b2
extinct     /extinct.html /museum.html                    1 a1 · 8 -1 · 12 a2'
ringone     /ring/1.html                                  1 a1 · 9 a1? · 11 -1 · 13 a2
ringtwo     /ring/2.html                                  1 a1 · 9 a1? · 11 -1 · 13 a2
newcomer    /newcomer.html                                15 a1
keeper      /keeper.html                                  1 a1
later       /later.html                                   16 a1
mapped      /mapped.html /found.html                      1 a1 · 17 a1? · 19 a1 · 45 a1? · 46 a2'
alias       /alias.html                                   1 a1 · 20 -1
chained     /chained.html /chain/end.html                 1 a1 · 21 a2'
looped      /looped.html                                  1 a1 · 21 a1! · 22 a1
fleeting    /fleeting.html                                1 a1 · 23 b2
secret      /private/secret.html                          1 a1 · 23 a1? · 25 a1
extraone    /extra/1.html /both.html /extra/1.html /both.html  1 a1 · 26 -1 · 27 a2 · 41 b3' · 42 a4'' · 43 b5'''
extratwo    /extra/2.html                                 1 a1 · 26 -1 · 27 a2 · 41 -2 · 42 a3 · 43 -3
quirky      /quirky.html                                  1 a1 · 28 a2
flaky       /flaky.html                                   1 a1 · 29 a1! · 30 b2 · 38 -2 · 39 b3
walled      /walled.html                                  1 a1 · 29 a1! · 31 a1 · 41 -1 · 42 a2 · 43 -2
password    /password.html /gate.html /password.html /gate.html  1 a1 · 29 a1! · 31 a1 · 41 a2' · 42 a3'' · 43 a4'''
softened    /softened.html                                1 a1 · 29 a1! · 31 a1
emptied     /emptied.html                                 1 a1 · 29 a1! · 31 a1
liar        /liar.html                                    1 a1 · 33 b2 · 38 -2 · 39 b3
twins       /twin/1.html                                  1 a1 · 34 -1
twins       /twin/2.html                                  1 a1 · 34 -1
twins       /twin/3.html                                  34 a1
overdue     /overdue.html                                 37 a1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One document, in one chapter."""

    number: int  # of its line in the table
    path: str
    word: str | None  # by which a search finds it; None: it is not shown
    versions: int
    lifecycle: str


def state(chapter: int) -> list[Row]:
    """Return the rows of the table for this chapter."""
    return [row for number, line in enumerate(TABLE.split("\n")) if line and (row := _row(number, line, chapter))]


def _row(number: int, line: str, chapter: int) -> Row | None:
    name, *words = line.replace("·", "").split()
    paths, cells = [word for word in words if word.startswith("/")], [word for word in words if word[0] != "/"]
    since = {int(first): cell for first, cell in zip(cells[::2], cells[1::2], strict=True)}
    passed = [first for first in since if first <= chapter]
    if not passed:
        return None
    cell = since[max(passed)]
    lifecycle = {"?": "missing", "!": "error"}.get(cell[-1], "deleted" if cell[0] == "-" else "active")
    return Row(
        number=number,
        path=paths[cell.count("'")],
        word=None if cell[0] == "-" else f"{name}9{cell[0]}",
        versions=int(cell.strip("abc-'?!")),
        lifecycle=lifecycle,
    )


# The site ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int = 200
    body: bytes = b""
    etag: str = ""
    modified: str = ""
    location: str = ""
    content_type: str = "text/html"
    hangs: bool = False  # until the site is closed


def page(word: str, *links: str, chrome: str = "", note: str = "", marked: str = "strong") -> Reply:
    """Return a page. ``marked``: its validators: strong, weak, dated, none; or a lie: an ETag that never changes."""
    named = "".join(f'<li><a href="{link}">{link.strip("/") or "home"}</a></li>' for link in links)
    body = (
        f"<!doctype html><html><head><title>On the {word}</title><meta name=build content='{chrome}'></head><body>"
        f"<nav><ul>{named}</ul></nav><main><h1 id=top>On the {word}</h1>{f'<p class=note>{note}</p>' if note else ''}"
        f"<p>This is found everywhere, and of all pages only here it says {word} and nothing like it.</p></main>"
        f"<footer>{chrome}</footer></body></html>"
    ).encode()
    tag = hashlib.sha256(body).hexdigest()[:12]
    hour = int(tag, 16) % 24
    match marked:
        case "none":
            return Reply(body=body)
        case "dated":
            return Reply(body=body, modified=f"Sun, 01 Nov 2026 {hour:02}:00:00 GMT")
        case "weak":
            return Reply(body=body, etag=f'W/"{tag}"')
        case "lie":
            return Reply(body=body, etag='"always-the-same"')
    return Reply(body=body, etag=f'"{tag}"')


def moved(to: str, status: int = 301) -> Reply:
    return Reply(status=status, location=to)


def lists(*paths: str) -> Reply:
    urls = "".join(f"<url><loc>{{origin}}{path}</loc></url>" for path in paths)
    namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return Reply(body=f'<urlset xmlns="{namespace}">{urls}</urlset>'.encode(), content_type="application/xml")


def robots(*forbidden: str) -> Reply:
    rules = "".join(f"Disallow: {path}\n" for path in forbidden)
    return Reply(body=f"User-agent: *\n{rules}".encode(), content_type="text/plain")


GONE = Reply(status=404)
LOG_IN = b"""<!doctype html><title>Sign in</title><h1>Sign in</h1>
<form method=post>Name <input name=user> Password <input type=password name=word> <button>Sign in</button></form>"""
SHELL = b"""<!doctype html><html><head><title>App</title></head><body><div id="root"></div>
<script src="/app.js"></script></body></html>"""
SORRY = Reply(body=b"<!doctype html><title>Oh no</title><h1>Sorry</h1><p>There is nothing here, or there was once.</p>")

LINKED = """
edited weak dated unmarked chromed walker wanderer castor pollux doomed extinct ring/1 keeper alias chained looped
fleeting private/secret extra/1 extra/2 quirky flaky walled password softened emptied liar twin/1 twin/2
"""


def home(*more: str, without: str = "") -> Reply:
    """Return the root, which links to nearly everything."""
    names = [name for name in LINKED.split() if name not in without.split()]
    return page("root9a", *(f"/{name}.html" for name in [*names, *more]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    happens: str
    pages: Mapping[str, Reply | None] = field(default_factory=dict)  # changed responses; None: not found
    absent: Reply = GONE  # the response of all other paths
    mode: str = "refresh"  # or full, failed; or rollback, to what was shown two chapters before
    settings: Callable[[SourceSettings], SourceSettings] = lambda settings: settings
    ends: str = "active"  # or held, or failed, or cancelled when it comes to a page that hangs
    then: str = ""  # the decision about a held generation


def _excluding(*patterns: str) -> Callable[[SourceSettings], SourceSettings]:
    return lambda settings: replace(settings, scope=Scope(exclude=patterns))


def _at_most(pages: int | None) -> Callable[[SourceSettings], SourceSettings]:
    return lambda settings: replace(settings, limits=Limits(max_pages=pages))


_AS_THEY_WERE = {
    "/edited.html": page("edited9c"),
    "/weak.html": page("weak9b", marked="weak"),
    "/dated.html": page("dated9b", marked="dated"),
    "/unmarked.html": page("unmarked9a", marked="none"),
    "/castor.html": page("gemini9b"),
    "/pollux.html": page("gemini9a"),
    "/flaky.html": page("flaky9b"),
    "/liar.html": page("liar9b", marked="lie"),
}

CHAPTERS = {
    1: Chapter(
        happens="a first crawl",
        pages={
            "/robots.txt": robots("/never/"),
            "/sitemap.xml": lists("/", "/mapped.html"),
            "/": home(),
            "/edited.html": page("edited9a"),
            "/weak.html": page("weak9a", marked="weak"),
            "/dated.html": page("dated9a", marked="dated"),
            "/unmarked.html": page("unmarked9a", marked="none"),
            "/chromed.html": page("chromed9a", chrome="built on Monday"),
            "/walker.html": page("walker9a"),
            "/wanderer.html": page("wanderer9a"),
            "/castor.html": page("gemini9a"),
            "/pollux.html": page("gemini9b"),
            "/doomed.html": page("doomed9a"),
            "/extinct.html": page("extinct9a"),
            "/ring/1.html": page("ringone9a", "/ring/2.html"),
            "/ring/2.html": page("ringtwo9a", "/ring/1.html"),
            "/keeper.html": page("keeper9a", "/later.html"),
            "/mapped.html": page("mapped9a"),
            "/alias.html": page("alias9a"),
            "/chained.html": page("chained9a"),
            "/looped.html": page("looped9a"),
            "/fleeting.html": page("fleeting9a"),
            "/private/secret.html": page("secret9a"),
            "/extra/1.html": page("extraone9a"),
            "/extra/2.html": page("extratwo9a"),
            "/quirky.html": page("quirky9a", note="A note that another reader leaves out."),
            "/flaky.html": page("flaky9a"),
            "/walled.html": page("walled9a"),
            "/password.html": page("password9a"),
            "/softened.html": page("softened9a"),
            "/emptied.html": page("emptied9a"),
            "/liar.html": page("liar9a", marked="lie"),
            "/twin/1.html": page("twins9a"),
            "/twin/2.html": page("twins9a"),
        },
    ),
    2: Chapter(happens="nothing"),
    3: Chapter(
        happens="three pages are edited, each with another kind of validators",
        pages={
            "/edited.html": page("edited9b"),
            "/weak.html": page("weak9b", marked="weak"),
            "/dated.html": page("dated9b", marked="dated"),
        },
    ),
    4: Chapter(
        happens="only the chrome of two pages is edited, one of them without validators",
        pages={
            "/chromed.html": page("chromed9a", chrome="built on Tuesday"),
            "/unmarked.html": page("unmarked9a", chrome="nonce 4711", marked="none"),
        },
    ),
    5: Chapter(
        happens="a page moves and leaves a redirect",
        pages={"/walker.html": moved("/walks/on.html"), "/walks/on.html": page("walker9a")},
    ),
    6: Chapter(
        happens="a page moves and leaves nothing",
        pages={
            "/": home("far/away", without="wanderer"),
            "/wanderer.html": None,
            "/far/away.html": page("wanderer9a"),
        },
    ),
    7: Chapter(
        happens="two pages are swapped", pages={"/castor.html": page("gemini9b"), "/pollux.html": page("gemini9a")}
    ),
    8: Chapter(happens="two pages are deleted", pages={"/doomed.html": GONE, "/extinct.html": Reply(status=410)}),
    9: Chapter(
        happens="nothing leads to two pages any more but they themselves",
        pages={"/": home("far/away", without="wanderer ring/1")},
    ),
    10: Chapter(happens="nothing: they are waited for"),
    11: Chapter(happens="nothing: they have been waited for long enough"),
    12: Chapter(
        happens="what was deleted is back: with other words, and elsewhere",
        pages={
            "/": home("far/away", "museum", without="wanderer ring/1"),
            "/doomed.html": page("doomed9b"),
            "/museum.html": page("extinct9a"),
        },
    ),
    13: Chapter(
        happens="something leads to the two again", pages={"/": home("far/away", "museum", without="wanderer")}
    ),
    14: Chapter(
        happens="the navigation of a page gains a link to a new page, and the crawl is cancelled there",
        pages={
            "/chromed.html": page("chromed9a", "/newcomer.html", chrome="built on Tuesday"),
            "/newcomer.html": Reply(hangs=True),
        },
        ends="cancelled",
    ),
    15: Chapter(happens="nothing else: the next crawl has to find it", pages={"/newcomer.html": page("newcomer9a")}),
    16: Chapter(happens="a link of a page that answers 304 is no longer dead", pages={"/later.html": page("later9a")}),
    17: Chapter(happens="the sitemap no longer names a page that only it named", pages={"/sitemap.xml": lists("/")}),
    18: Chapter(happens="the sitemap cannot be read", pages={"/sitemap.xml": Reply(status=500)}),
    19: Chapter(happens="the sitemap names it again", pages={"/sitemap.xml": lists("/", "/mapped.html")}),
    20: Chapter(happens="a page redirects to another that is known", pages={"/alias.html": moved("/edited.html")}),
    21: Chapter(
        happens="a chain of redirects, and a circle of them",
        pages={
            "/chained.html": moved("/chain/1.html"),
            "/chain/1.html": moved("/chain/2.html", 308),
            "/chain/2.html": moved("/chain/end.html"),
            "/chain/end.html": page("chained9a"),
            "/looped.html": moved("/loop.html"),
            "/loop.html": moved("/looped.html"),
        },
    ),
    22: Chapter(
        happens="the circle is cut; a page is elsewhere for a while",
        pages={
            "/looped.html": page("looped9a"),
            "/fleeting.html": moved("/for/now.html", 302),
            "/for/now.html": page("fleeting9a"),
        },
    ),
    23: Chapter(
        happens="robots.txt forbids a page; what is elsewhere for a while is edited",
        pages={"/robots.txt": robots("/never/", "/private/"), "/for/now.html": page("fleeting9b")},
    ),
    24: Chapter(happens="robots.txt cannot be read", pages={"/robots.txt": Reply(status=500)}, ends="failed"),
    25: Chapter(happens="robots.txt forbids nothing any more", pages={"/robots.txt": robots()}),
    26: Chapter(happens="the scope leaves a part out", settings=_excluding("extra/*")),
    27: Chapter(happens="and has it in again", settings=_excluding()),
    28: Chapter(
        happens="pages are read otherwise: of one that makes a difference",
        settings=lambda settings: replace(settings, region=Region(drop=(".note",))),
    ),
    29: Chapter(
        happens="500, a redirect to a log-in, a log-in form, an error page with 200, an empty shell",
        pages={
            "/flaky.html": Reply(status=500),
            "/walled.html": moved("/login?next=/walled.html", 302),
            "/password.html": Reply(body=LOG_IN),
            "/softened.html": SORRY,
            "/emptied.html": Reply(body=SHELL),
        },
        absent=SORRY,
    ),
    30: Chapter(
        happens="one of them is well again, and was edited; only they are tried",
        pages={"/flaky.html": page("flaky9b"), "/edited.html": page("edited9c")},
        absent=SORRY,
        mode="failed",
    ),
    31: Chapter(
        happens="all are well again",
        pages={
            "/edited.html": page("edited9b"),
            "/walled.html": page("walled9a"),
            "/password.html": page("password9a"),
            "/softened.html": page("softened9a"),
            "/emptied.html": page("emptied9a"),
        },
    ),
    32: Chapter(
        happens="a page is edited and its server denies it", pages={"/liar.html": page("liar9b", marked="lie")}
    ),
    33: Chapter(happens="it is asked without conditions", mode="full"),
    34: Chapter(
        happens="of two pages that say the same none is left, and a third appears",
        pages={
            "/": home("far/away", "museum", "twin/3", without="wanderer twin/1 twin/2"),
            "/twin/1.html": None,
            "/twin/2.html": None,
            "/twin/3.html": page("twins9a"),
        },
    ),
    35: Chapter(
        happens="a page moves back and is edited at once",
        pages={"/walks/on.html": moved("/walker.html"), "/walker.html": page("walker9b")},
    ),
    36: Chapter(
        happens="a limit keeps a new page out, and not the edit of an old one; nothing leads to some, for all we know",
        pages={
            "/": home("far/away", "museum", "twin/3", "overdue", without="wanderer twin/1 twin/2 ring/1"),
            "/overdue.html": page("overdue9a"),
            "/edited.html": page("edited9c"),
        },
        settings=_at_most(32),
    ),
    37: Chapter(
        happens="no limit",
        pages={"/": home("far/away", "museum", "twin/3", "overdue", without="wanderer twin/1 twin/2")},
        settings=_at_most(None),
    ),
    38: Chapter(
        happens="a quarter of the pages is gone, and a person says that this is right",
        pages=dict.fromkeys(_AS_THEY_WERE),
        ends="held",
        then="activate",
    ),
    39: Chapter(happens="they are all back", pages=_AS_THEY_WERE),
    40: Chapter(
        happens="the root itself moves",
        pages={
            "/": moved("/start.html"),
            "/start.html": home("far/away", "museum", "twin/3", "overdue", without="wanderer twin/1 twin/2"),
        },
    ),
    41: Chapter(
        happens="two pages redirect to one that is new; one redirects to another that redirects",
        pages={
            "/extra/1.html": moved("/both.html"),
            "/extra/2.html": moved("/both.html"),
            "/both.html": page("extraone9b"),
            "/walled.html": moved("/password.html"),
            "/password.html": moved("/gate.html"),
            "/gate.html": page("password9a"),
        },
    ),
    42: Chapter(happens="a user rolls back to the chapter before that", mode="rollback"),
    43: Chapter(happens="and the next crawl finds the site as it is"),
    44: Chapter(
        happens="a page vanishes, and two appear that say what it said",
        pages={
            "/start.html": home("copy/1", "copy/2", "museum", "twin/3", "overdue", without="wanderer twin/1 twin/2"),
            "/far/away.html": None,
            "/copy/1.html": page("wanderer9a"),
            "/copy/2.html": page("wanderer9a"),
        },
    ),
    45: Chapter(happens="the sitemap forgets a page", pages={"/sitemap.xml": lists("/")}),
    46: Chapter(
        happens="and while it is waited for, it turns up elsewhere",
        pages={
            "/sitemap.xml": lists("/", "/found.html"),
            "/mapped.html": None,
            "/found.html": page("mapped9a"),
        },
    ),
}


# Serving it -------------------------------------------------------------------------------------------------------


class Site:
    """The site on loopback, in this process."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, int]] = []  # in this chapter: paths and statuses
        self.hanging = asyncio.Event()  # a client waits for a page that hangs
        self.origin = ""
        self._pages: dict[str, Reply] = {}
        self._absent = GONE

    @property
    def root(self) -> str:
        return f"{self.origin}/"

    def turn(self, chapter: Chapter) -> None:
        """Begin the next chapter."""
        self.answer(chapter.pages, absent=chapter.absent)

    def answer(self, pages: Mapping[str, Reply | None], *, absent: Reply = GONE) -> None:
        self._absent, self.requests = absent, []
        self._pages |= {path: reply or GONE for path, reply in pages.items()}

    def paths(self) -> list[str]:
        return list(self._pages)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                path = head.split(" ", 2)[1]
                reply = self._pages.get(path, self._absent)
                if reply.hangs:
                    self.hanging.set()
                    await reader.read()  # until the client disconnects
                writer.write(self._answer(path, reply, head))
                await writer.drain()
        writer.close()

    def _answer(self, path: str, reply: Reply, head: str) -> bytes:
        status, body = reply.status, reply.body.replace(b"{origin}", self.origin.encode())
        headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        held = {headers.get("if-none-match"), headers.get("if-modified-since")}
        if held & {one.lower() for one in (reply.etag, reply.modified) if one}:
            status, body = 304, b""
        self.requests.append((path, status))
        said = {"ETag": reply.etag, "Last-Modified": reply.modified, "Location": reply.location}
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Content-Type: {reply.content_type}"]
        lines += [f"Content-Length: {len(body)}", *(f"{name}: {value}" for name, value in said.items() if value)]
        return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def serving() -> AsyncIterator[Site]:
    site = Site()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    site.origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield site
    finally:
        server.close()
