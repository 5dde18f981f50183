"""Make the screenshots of docs/pages.md: every page, light and dark, on a desktop and on a phone.

python -m tests.e2e.screenshots docs/pages
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import Server, open_browser, pool, tern
from tests.e2e.browser import page as html
from tests.sites.pages import serving
from tests.sites.slow import SlowSite

SIZES = {"desk": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    site = tern()
    with (
        tempfile.TemporaryDirectory() as home,
        open_browser() as browser,
        Server(f"sqlite:///{home}/kept.db", settings={"XDG_DATA_HOME": home}) as server,
        serving(site) as root,
    ):
        _shoot(browser, folder, {"first-run": server.url})
        _shoot(browser, folder, _grow(browser, server, root, site))
        with SlowSite(pages=4000, seconds=0.1) as slow:
            _shoot(browser, folder, {"live": _begin(browser, server, slow.root)}, quiet=False)
    with tempfile.TemporaryDirectory() as home, open_browser() as browser:
        database = f"sqlite:///{home}/kept.db"
        with Server(database, settings={"XDG_DATA_HOME": home, "KEPT_SERVE__HOSTS": "docs.test"}) as server:
            _shoot(browser, folder, {"login": f"{server.url}/login"})
            _shoot(browser, folder, {"logged-in": f"{server.url}/sources"}, key=_key(database))


def _grow(browser: Browser, server: Server, root: str, site: dict[str, tuple[str, bytes]]) -> dict[str, str]:
    """Create a source with history and a held generation. Returns the URL of each page."""
    page = browser.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    for version in ("1.8", "2.0"):
        page.goto(f"{server.url}/add?root={root}")
        page.fill("#name", "tern")
        page.fill("#version", version)
        page.get_by_role("button", name="Keep it").click()
        _until_done(page)
    for number, limits in enumerate(("Sixteen connections, unless pool_size says otherwise.", "Sixteen, and no more.")):
        site["/guide/pool.html"] = pool(limits)
        kind, body = site["/"]
        site["/"] = (kind, body.replace(b"</ul>", f'<li><a href="/news/{number}.html">News {number}</a></ul>'.encode()))
        site[f"/news/{number}.html"] = html(
            f"News of the year {number}", "<p>The pool has grown, and nobody noticed.</p>"
        )
        _refresh(page, server, "tern@2.0")
    job = page.url
    for bird in ("avocet", "bittern", "curlew", "dunlin", "egret"):
        del site[f"/guide/{bird}.html"]
    _refresh(page, server, "tern@2.0")
    page.goto(f"{server.url}/?q=pool_size&source=tern@2.0")
    page.locator(".hit").first.click()
    document = page.url.partition("#")[0]
    page.close()
    return {
        "search": f"{server.url}/?q=pool+size+limits",
        "sources": f"{server.url}/sources",
        "add": f"{server.url}/add?root={root}",
        "source": f"{server.url}/sources/tern@2.0",
        "changes": f"{server.url}/sources/tern@2.0/changes?a=1&b=3",
        "document": document,
        "diff": f"{document}/diff?a=1&b=3",
        "jobs": f"{server.url}/jobs",
        "job": job,
        "error": f"{server.url}/nowhere",
    }


def _begin(browser: Browser, server: Server, root: str) -> str:
    """Start a crawl. Returns the URL of its page."""
    page = browser.new_page()
    page.goto(f"{server.url}/add?root={root}")
    page.fill("#name", "manual")
    page.get_by_role("button", name="Keep it").click()
    expect(page.locator(".figures")).to_contain_text(re.compile(r"Done\d{3}"), timeout=60_000)
    job = page.url
    page.close()
    return job


def _key(database: str) -> str:
    command = [sys.executable, "-m", "kept", "--database", database, "keys", "add", "laptop", "--scope", "write"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _refresh(page: Page, server: Server, label: str) -> None:
    page.goto(f"{server.url}/sources/{label}")
    page.get_by_role("button", name="Refresh").click()
    _until_done(page)


def _until_done(page: Page) -> None:
    expect(page.locator("h1 .badge")).to_have_text(re.compile("completed|held"), timeout=30_000)


def _shoot(browser: Browser, folder: Path, addresses: dict[str, str], *, quiet: bool = True, key: str = "") -> None:
    for size, viewport in SIZES.items():
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport=viewport, color_scheme=scheme)
            for name, address in addresses.items():
                if key:
                    page.goto(address)
                    page.fill("#key", key)
                    page.get_by_role("button", name="Log in").click()
                page.goto(address)
                if name == "add":
                    page.get_by_role("button", name="See what").click()
                    page.locator(".preview").wait_for()
                page.wait_for_load_state("networkidle" if quiet else "load")
                page.screenshot(path=folder / f"{name}-{size}-{scheme}.png")
            page.close()


if __name__ == "__main__":
    main()
