"""The pages, in a real browser against a real server: what users can do, and what crawled text cannot do."""

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import Server, open_browser, pool, tern
from tests.e2e.browser import page as html
from tests.sites.pages import serving
from tests.sites.slow import SlowSite

expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    yield page
    page.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(f"sqlite:///{tmp_path}/kept.db", settings={"XDG_DATA_HOME": str(tmp_path)}) as server:
        yield server


def until(page: Page, status: str) -> None:
    """Wait until the page shows this status, without a reload."""
    expect(page.locator("h1 .badge")).to_have_text(status)


def add(page: Page, server: Server, root: str, status: str = "completed") -> None:
    page.goto(f"{server.url}/add?root={quote(root)}")
    page.fill("#name", "tern")
    page.get_by_role("button", name="Keep it").click()
    until(page, status)


def refresh(page: Page, server: Server, status: str = "completed") -> None:
    page.goto(f"{server.url}/sources/tern")
    page.get_by_role("button", name="Refresh").click()
    until(page, status)


def test_a_site_is_added_searched_changed_compared_rolled_back_and_reviewed(page: Page, server: Server) -> None:
    site = tern()
    with serving(site) as root:
        page.goto(server.url)
        expect(page.get_by_text("Nothing is here yet")).to_be_visible()
        page.get_by_label("Where does it live?").fill(root)
        page.get_by_role("button", name="Begin").click()
        page.get_by_role("button", name="See what it would include").click()
        expect(page.get_by_role("heading", name="11 pages to begin with")).to_be_visible()
        page.fill("#name", "tern")
        page.get_by_role("button", name="Keep it").click()
        until(page, "completed")
        for last in (False, False, True):  # the list is loaded again when the crawl has ended: that may come between
            page.get_by_role("link", name="dead link 1").click()
            with nullcontext() if last else suppress(AssertionError):
                gone = re.compile("dead link.*/lost.html.*404")
                expect(page.locator(".entries li")).to_have_text(gone, timeout=4000)
                break

        page.goto(server.url)
        expect(page.locator("[data-search]")).to_be_focused()
        page.keyboard.type("pelican evening")
        expect(page.locator("[data-search]")).to_have_value("pelican evening")
        expect(page.locator(".hit mark").first).to_have_text("pelican", ignore_case=True)
        expect(page).to_have_url(f"{server.url}/?q=pelican%20evening")
        expect(page.get_by_role("status")).to_have_text(re.compile(r"^\d+ results?$"))
        page.go_back()
        expect(page.get_by_text("Results appear as you type")).to_be_visible()
        page.go_forward()
        expect(page.locator(".hit").first).to_be_visible()
        page.keyboard.press("/")
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect(page.locator("h2#closing:target")).to_be_in_viewport()
        assert "/documents/" in page.url
        page.get_by_role("link", name="Home").click()
        expect(page.locator("article h1")).to_have_text("Tern")  # a link to a page that is kept leads to our own
        away = page.get_by_role("link", name="somebody else")
        assert away.get_attribute("rel") == "noopener noreferrer nofollow"

        site["/guide/pool.html"] = pool("Sixteen connections, unless pool_size says otherwise.")
        refresh(page, server)
        page.goto(f"{server.url}/sources/tern")
        page.get_by_role("link", name="What changed").click()
        page.get_by_role("link", name="/guide/pool.html").click()
        expect(page.locator(".diff .left b")).to_have_text("Twelve")
        expect(page.locator(".diff .right b")).to_have_text("Sixteen")
        page.get_by_role("link", name="The pool").click()
        page.get_by_text("2 versions").click()
        page.locator("[data-history]").press("ArrowLeft")
        expect(page.get_by_text("This is the document in generation 1")).to_be_visible()
        expect(page.get_by_text("Twelve connections")).to_be_visible()

        page.goto(f"{server.url}/sources/tern")
        page.get_by_role("button", name="Roll back to 1").click()
        expect(page.locator(".timeline > li.active")).to_contain_text("Generation 3")
        expect(page.locator(".timeline > li.active")).to_contain_text("1 changed")
        page.goto(f"{server.url}/?q=twelve+connections")
        expect(page.locator(".hit").first).to_contain_text("Twelve connections")
        page.goto(f"{server.url}/?q=conections")
        expect(page.locator("#understood")).to_contain_text("Showing results for connections.")
        expect(page.locator(".hit mark").first).to_have_text("connections", ignore_case=True)
        page.get_by_role("link", name="connections", exact=True).click()
        expect(page.locator("#understood")).to_have_count(0)
        page.get_by_label("code examples").check()
        expect(page).to_have_url(f"{server.url}/?q=connections&kind=code")

        page.goto(f"{server.url}/sources/tern")
        for exclude, schedule in (("blog/*\nold/*", "1d"), ("", "")):
            page.fill("#exclude", exclude)
            page.fill("#schedule", schedule)
            page.get_by_role("button", name="Save").click()
            expect(page).to_have_url(f"{server.url}/sources/tern#settings")
            expect(page.locator(".figures")).to_contain_text(f"Schedule{schedule or 'by hand'}")
            expect(page.locator("#exclude")).to_have_value(exclude)

        for bird in ("avocet", "bittern", "curlew", "dunlin", "egret"):
            del site[f"/guide/{bird}.html"]
        refresh(page, server, "held")
        page.get_by_role("link", name="Review it").click()
        expect(page.locator(".lost-list li")).to_have_count(5)
        expect(page.locator(".lost-list li").first).to_have_text(re.compile("avocet.html.*404 Not Found"))
        page.get_by_role("button", name="Discard it").click()
        expect(page.locator("h1 .badge")).to_have_text("ready")
        expect(page.locator(".figures")).to_contain_text("Documents10")
        refresh(page, server, "held")
        page.get_by_role("link", name="Review it").click()
        page.get_by_role("button", name="Activate it").click()
        expect(page.locator(".figures")).to_contain_text("Documents5")
        expect(page.locator(".tree a")).to_have_count(5)
        page.get_by_text("More", exact=True).click()
        page.get_by_role("button", name="Remove this source").click()
        expect(page.get_by_text("Nothing is kept yet")).to_be_visible()


def test_a_crawl_is_watched_paused_and_resumed_and_the_page_survives_a_killed_server(
    page: Page, server: Server
) -> None:
    with SlowSite(pages=120, seconds=0.2) as site:
        add(page, server, site.root, "processing")
        expect(page.locator(".figures")).to_contain_text("of 121")
        page.get_by_role("button", name="Pause").click()
        until(page, "paused")
        expect(page.locator(".figures")).to_contain_text(re.compile("Done[1-9]"))  # the worker has left
        site.open.clear()
        page.get_by_role("button", name="Resume").click()
        until(page, "processing")
        page.get_by_role("link", name=re.compile("^new")).click()
        expect(page.locator(".ledger [aria-current]")).to_contain_text("new")
        page.evaluate("window.sameDocument = true")
        server.kill()
        expect(page.locator(".disconnected")).to_be_visible()
        site.open.set()
        server.start()
        until(page, "completed")
        assert page.evaluate("window.sameDocument"), "the page was not reloaded"
        expect(page.locator(".figures")).to_contain_text("Done121 of 121")
        expect(page.locator(".ledger [aria-current]")).to_have_text("new 121")
        assert page.locator("polyline").get_attribute("points").count(",") > 3
        page.get_by_role("link", name="More pages").click()
        expect(page.locator(".entries li")).to_have_count(21)


# What crawled text cannot do -----------------------------------------------------------------------------------

HARM = [
    "<script>pwned=1</script>",
    "<img src=x onerror=pwned=1>",
    "<svg onload=pwned=1>",
    "\"><script>pwned=1</script>",
    "'><img src=x onerror=pwned=1>",
    "</title></textarea></script><script>pwned=1</script>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<a href=javascript:pwned=1>harm</a>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=pwned=1>",
    "<style>*{background:url(javascript:pwned=1)}</style>",
    "<details open ontoggle=pwned=1>",
    "<div hx-get=/jobs hx-trigger=load hx-on::load=pwned=1>harm</div>",
    "{{ ''.__class__ }} ${pwned=1} <%= pwned %>",
    "**x**<img src=x onerror=pwned=1>**y**",
]  # fmt: skip
LINKS = [
    "javascript:pwned=1",
    "JaVaScRiPt:pwned=1",
    "&#106;avascript:pwned=1",
    "java\tscript:pwned=1",
    "data:text/html,<script>pwned=1</script>",
    "vbscript:pwned=1",
    "//127.0.0.1:1/%22onmouseover=pwned=1",
    "x\" onmouseover=pwned=1 \"",
]  # fmt: skip


def harmful() -> dict[str, tuple[str, bytes]]:
    def escaped(text: str) -> str:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")

    site: dict[str, tuple[str, bytes]] = {}
    for number, harm in enumerate(HARM):
        text = escaped(harm)
        body = f'<p>harm {text}</p><h2 id="{text}">{text}</h2><p>more harm {text}</p>'
        site[f"/at/{number}{quote(harm)}.html"] = html(text, body)
    notes = "\n\n".join(f"harm {harm}\n\n{harm}\n\n## two {harm}" for harm in HARM)
    site["/notes.md"] = ("text/markdown", f"# {HARM[0]}\n\n{notes}\n".encode())
    links = "".join(f'<a href="{escaped(link)}">link</a> ' for link in LINKS)
    markdown = "\n\n".join(f'[link](<{link}> "{link}") ![picture](<{link}>)' for link in LINKS)
    site["/links.html"] = html("Links", f"<p>harm {links}</p>")
    site["/more.md"] = ("text/markdown", f"# Links\n\nharm\n\n{markdown}\n".encode())
    index = "".join(f'<li><a href="{path}">{number}</a>' for number, path in enumerate(site))
    site["/"] = html("Harm", f"<p>All of it is harm.</p><ul>{index}</ul>")
    return site


def test_no_crawled_or_typed_script_ever_runs(page: Page, server: Server) -> None:
    site = harmful()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    with serving(site) as root:
        add(page, server, root)
        kept = int(page.locator(".counts .new").inner_text().split()[0])
        assert kept == len(site), page.locator(".entries").inner_text()
        for path, (kind, body) in site.items():
            site[path] = (kind, body.replace(b"harm", b"more harm"))
        refresh(page, server)
        job = page.url.removeprefix(server.url)
    page.goto(f"{server.url}/sources/tern/tree")
    links = [link.get_attribute("href") or "" for link in page.locator(".tree a").all()]
    documents = [link for link in links if link.startswith("/documents/")]
    assert len(documents) == kept
    addresses = ["/", "/sources", "/sources/tern", "/sources/tern/changes?a=1&b=2", "/jobs", job, f"{job}/ledger"]
    addresses += [*documents, *(f"{address}/diff?a=1&b=2" for address in documents[::4])]
    addresses += [f"/?q={quote(harm)}" for harm in HARM[::3]] + [f"/{quote(HARM[3])}", f"/add?root={quote(HARM[3])}"]
    for address in addresses:
        page.goto(server.url + address, wait_until="load")
        found = page.evaluate(
            """() => [window.pwned ?? null, document.querySelectorAll(
                 'script:not([src^="/static/"]), [onerror], [onload], [onmouseover], [ontoggle], [style], ' +
                 'iframe, main img, .prose svg').length,
               [...document.links].map((link) => link.protocol).filter((one) => !/^(https?|mailto):$/.test(one))]"""
        )
        assert found == [None, 0, []], address
    assert {url for url in requests if not url.startswith(f"{server.url}/")} == set(), "other hosts get no request"


def test_forms_of_other_sites_change_nothing_and_error_pages_have_the_policy(server: Server) -> None:
    def get(path: str, **headers: str) -> tuple[int, str, str]:
        request = urllib.request.Request(server.url + path, headers=headers)
        if headers:
            request.data = b"root=http://127.0.0.1:9/"
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.headers["Content-Security-Policy"], answer.read().decode()
        except HTTPError as error:
            return error.code, error.headers["Content-Security-Policy"], error.read().decode()

    for headers in ({"Origin": "https://evil.test"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        status, policy, text = get("/add", **headers)
        assert (status, "Pages of other sites" in text) == (403, True)
    wrong = (
        "/documents/x?generation=y",
        "/jobs?status=x",
        "/sources/x/tree?after=%00",
        "/sources/x/changes?a=1",
        "/?more=?",
    )
    absent = ("/nowhere", "/sources/tren", "/sources/%00", "/documents/%00", f"/jobs/{'9' * 40}", "/jobs/zz")
    for path, code in [*((path, 400) for path in wrong), *((path, 404) for path in absent), ("/add?root=%00%FF", 200)]:
        status, policy, text = get(path)
        assert (status, "<h1>" in text) == (code, True)
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
    assert get("/api/nowhere")[1] is None, "what programs ask for has answers of its own"


def test_every_page_is_accessible_in_light_and_dark(page: Page, server: Server) -> None:
    site = tern()
    with serving(site) as root:
        page.goto(server.url)
        faults = look(page)
        page.goto(f"{server.url}/add?root={quote(root)}")
        page.get_by_text("Scope and limits").click()
        page.get_by_role("button", name="See what").click()
        page.locator(".preview").wait_for()
        faults += look(page)
        add(page, server, root)
        faults += look(page)
        site["/guide/pool.html"] = pool("Sixteen.")
        refresh(page, server)
        for bird in ("avocet", "bittern", "curlew", "dunlin", "egret"):
            del site[f"/guide/{bird}.html"]
        refresh(page, server, "held")
    for address in (
        "/?q=pool_size",
        "/sources",
        "/sources/tern",
        "/sources/tern/changes?a=1&b=2",
        "/jobs",
        "/nowhere",
        "/login",
    ):
        page.goto(server.url + address)
        faults += look(page)
    page.goto(f"{server.url}/?q=pool_size")
    page.locator(".hit").first.click()
    page.get_by_text("2 versions").click()
    faults += look(page)
    assert page.locator(".copy").count() > 0
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.reload()  # as it comes over plain HTTP from another machine
    assert page.locator(".copy").count() == 0, "no button that does nothing"
    page.goto(page.url.partition("#")[0] + "/diff")
    faults += look(page)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    faults += look(page)
    assert faults == []


def look(page: Page) -> list[str]:
    """Return the serious violations that axe finds, in light and in dark."""
    found = []
    expect(page.locator("[hx-trigger^=load] > a")).to_have_count(0)  # what is loaded later is there
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        only = {"runOnly": ["color-contrast"]} if scheme == "dark" else {}  # nothing else differs
        for fault in Axe().run(page, options=only | {"resultTypes": ["violations"]}).response["violations"]:
            if fault["impact"] in ("serious", "critical"):
                where = [node["html"] for node in fault["nodes"]]
                found.append(json.dumps([page.url, scheme, fault["id"], where]))
    return found
