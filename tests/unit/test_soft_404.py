"""Soft 404s and log-in forms, and above all the pages that must not be taken for them."""

import time
from pathlib import Path

import pytest

from kept.origins.web.soft_404 import MAX_BYTES, PROBE_NAME, Soft404, is_login_form, is_login_redirect, is_login_url

SITE = "https://docs.test"
NAV = "".join(f'<li><a href="/p{number}">Chapter about things</a></li>' for number in range(80))


def page(title: str, text: str, head: str = "", nav: str = NAV) -> bytes:
    return (
        f"<!doctype html><html><head><title>{title}</title>{head}</head><body><nav><ul>{nav}</ul></nav>"
        f"<main>{text}</main><script>var nonce = 'zq{len(text)}'</script></body></html>"
    ).encode()


FORM = '<form method="post"><input name="user"><input class="x" type="password" name="p"><button>Log in</button></form>'
PROSE = "<p>" + "Passwords are stored as a hash with a salt, and nobody can read them. " * 30 + "</p>"


@pytest.mark.parametrize(
    "body",
    [
        page("Please log in", FORM, nav=""),
        page("Sign in · Docs", f"<h1>Welcome back</h1>{FORM}<p>Forgot your password?</p>", nav=NAV[: 20 * 52]),
        b"<TITLE>x</TITLE><FORM><INPUT NAME=P TYPE=PASSWORD></FORM>",
        page("ログイン", FORM, nav="").replace(b'"password"', b"password"),
        page("Docs", f"<h2>Anmelden</h2>{FORM}", nav="<li>wort " * 90).replace(b"Anmelden", b"Anmeldeseite"),
    ],
)
def test_a_password_form_is_not_a_page(body: bytes) -> None:
    assert is_login_form(body)


@pytest.mark.parametrize(
    "body",
    [
        page("Passwords", PROSE),
        page("Log in forms", f"<h1>Log in forms</h1>{PROSE}<h2>Example</h2>{FORM}"),
        page("Authentication", "<p>Write <code>&lt;input type=&quot;password&quot;&gt;</code>.</p>", nav=""),
        page("The pool", f"<div class=login>{FORM}</div><p>Short page of a wiki with a box to log in.</p>"),
        page("Log in", "<p>Type <code>tern login</code> and your password.</p>", nav=""),
        b"password",
    ],
)
def test_a_page_about_passwords_is_a_page(body: bytes) -> None:
    assert not is_login_form(body)


@pytest.mark.parametrize(
    ("url", "outside", "leads"),
    [
        ("https://sso.test/login", True, True),
        ("https://sso.test/realms/x/saml", True, True),
        (f"{SITE}/users/sign_in?return_to=%2Fguide", False, True),
        (f"{SITE}/wp-login.php?redirect_to=x", False, True),
        (f"{SITE}/login", False, False),  # may be a page about it
        (f"{SITE}/guide/login.html?next=2", True, True),
        ("https://elsewhere.test/blog/", True, False),
        (f"{SITE}/catalogin/?next=1", True, False),
        (f"{SITE}/guide?next=/login", True, False),
    ],
)
def test_a_redirect_to_a_log_in_page_is_known_by_its_path_and_return_parameter(
    url: str, outside: bool, leads: bool
) -> None:
    assert is_login_redirect(url, outside=outside) is leads


def test_a_log_in_page_is_known_by_its_url() -> None:
    assert is_login_url(f"{SITE}/account/login/")
    assert is_login_url(f"{SITE}/register?plan=free")
    assert not is_login_url(f"{SITE}/guide/registers.html")


def absence(title: str = "Not found", text: str = "<h1>Oh no</h1><p>There is no {path} here.</p>") -> Soft404:
    made_up = f"{SITE}/docs/{PROBE_NAME}"
    found = Soft404.from_page(page(title, text.format(path=f"/docs/{PROBE_NAME}")), made_up)
    assert found is not None
    return found


def test_a_response_equal_to_that_for_a_made_up_page_is_a_soft_404() -> None:
    missing = "<h1>Oh no</h1><p>There is no <code>/docs/old page</code> here.</p><!-- request 17 -->"
    assert absence().matches(page("Not found", missing), f"{SITE}/docs/old%20page")
    assert absence(text="<p>Not found. Request 4f3a.</p>").matches(
        page("Not found", "<p>Not found. Request 99b1.</p>", head="<style>p{}</style>"), f"{SITE}/docs/x"
    )


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("The pool", "<h1>Oh no</h1><p>There is no pool here.</p>"),  # another title
        ("Not found", "<h1>Oh no</h1><p>There is no pool here, but a lake.</p>"),
        ("Not found", "<h1>Not found</h1><p>What to do about 404 pages.</p>"),
        ("Not found", ""),
    ],
)
def test_a_page_of_the_same_template_is_a_page(title: str, text: str) -> None:
    assert not absence().matches(page(title, text), f"{SITE}/docs/404.html")


def test_a_page_that_scripts_fill_is_not_taken_for_a_soft_404() -> None:
    shell = b"<title>Docs</title><div id=app></div><script src=app.js></script><noscript>Please run scripts</noscript>"
    assert Soft404.from_page(shell, f"{SITE}/{PROBE_NAME}") is None
    assert Soft404.from_page(b"", f"{SITE}/{PROBE_NAME}") is None


def test_a_large_response_is_a_page() -> None:
    large = page("Log in", FORM + "<!--" + "x" * MAX_BYTES + "-->")
    assert not is_login_form(large)
    assert Soft404.from_page(large, f"{SITE}/{PROBE_NAME}") is None
    lost = Soft404.from_page(page("Lost", PROSE), f"{SITE}/{PROBE_NAME}")
    assert lost is not None
    assert lost.matches(page("Lost", PROSE), f"{SITE}/a")
    assert not lost.matches(page("Lost", PROSE + "<!--" + "x" * MAX_BYTES + "-->"), f"{SITE}/a")


def test_a_redirect_is_a_soft_404_only_if_its_target_does_not_contain_the_requested_name() -> None:
    assert Soft404.from_redirect(f"{SITE}/en/{PROBE_NAME}") is None
    assert Soft404.from_redirect(None) is None
    home = Soft404.from_redirect(f"{SITE}/")
    assert home is not None
    assert home.redirects_to == f"{SITE}/"
    assert not home.matches(page("", ""), SITE)


@pytest.mark.parametrize("piece", [b"<!--", b"<script>", b"<input ", b"<h1", b"<title", b"&", b"type=", b"</script "])
def test_no_page_makes_it_slow(piece: bytes) -> None:
    body = b"<title>Not found</title><input type=password>" + piece * 200_000
    began = time.process_time()
    is_login_form(body)
    absence().matches(body, f"{SITE}/x")
    assert time.process_time() - began < 3


@pytest.mark.parametrize("folder", ["/usr/share/doc/git/html", "/usr/share/doc/sqlite3"])
def test_no_page_of_a_real_manual_is_taken_for_a_form_or_a_soft_404(folder: str) -> None:
    pages = sorted(Path(folder).rglob("*.html"))[:400]
    if not pages:
        pytest.skip(f"{folder} has no pages here")
    bodies = [(f"{SITE}/{path.name}", path.read_bytes()) for path in pages]
    assert [url for url, body in bodies if is_login_form(body)] == []
    # Even if the site answered every question with one of its own pages, only that page would be like it.
    for url, body in bodies[:: len(bodies) // 5 + 1]:
        made_up = Soft404.from_page(body, url)
        if made_up is not None:
            assert [other for other, text in bodies if made_up.matches(text, other) and text != body] == []
