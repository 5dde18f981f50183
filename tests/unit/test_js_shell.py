"""Pages that are empty until their scripts have run, and pages that are only short."""

import pytest

from kept.extract.js_shell import is_js_shell
from kept.extract.reader import parse_page
from kept.model.document import ParsedPage

SHELLS = {
    "docsify": '<title>Tern</title><body><div id="app">Loading ...</div><script src="//cdn.test/docsify.js"></script>',
    "react": '<body><noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div>'
    '<script src="/static/js/main.js"></script>',
    "angular": '<head><base href="/"></head><body><app-root></app-root><script src="main.js" type="module"></script>',
    "vite": '<head><script type="module" src="/assets/index.js"></script></head><body><div id="app"></div>',
    "a footer": '<body><a href="/">Home</a><div id="root"></div><footer>© 2026 Tern</footer><script src=x></script>',
    "no mount point": "<body><noscript>Please turn on JavaScript.</noscript><div></div><SCRIPT src=x></SCRIPT>",
}

PAGES = {
    "short": "<body><h1>Tern</h1><p>A bird.</p></body>",
    "short, counted": "<body><h1>Tern</h1><p>A bird.</p><script>count()</script></body>",
    "short, counted without scripts too": "<body><h1>Moved</h1><p>To the attic.</p><script src=x></script>"
    "<noscript><img src=/count.gif></noscript></body>",
    "links only": '<body><div id="root"><a href=a>a</a><a href=b>b</a><a href=c>c</a><a href=d>d</a></div>'
    "<script src=x></script></body>",
    "rendered at home": '<body><div id="root"><h1>Terns</h1><p>' + "Terns are seabirds. " * 12 + "</p></div>"
    "<script src=x></script></body>",
    "a name that frameworks use": "<body><h1>Tern</h1><p id=app>A bird.</p><script src=x></script></body>",
    "no scripts": '<body><div id="app"></div></body>',
    "frames": '<frameset><frame src=a.html></frameset><div id="app"></div>',
    "nothing": "",
}


@pytest.mark.parametrize("name", SHELLS)
def test_an_empty_shell_is_recognised(name: str) -> None:
    assert is_js_shell(SHELLS[name])


@pytest.mark.parametrize("name", PAGES)
def test_a_short_page_is_no_shell(name: str) -> None:
    assert not is_js_shell(PAGES[name])


def test_the_reader_reports_a_shell() -> None:
    shell, page = (
        parse_page(html.encode(), content_type="text/html", url="https://docs.test/")
        for html in (SHELLS["docsify"], PAGES["short, counted"])
    )
    assert isinstance(shell, ParsedPage)
    assert isinstance(page, ParsedPage)
    assert (shell.is_js_shell, page.is_js_shell) == (True, False)


LINKS = b'<p><a href="#/guide">g</a> <a href="#/guide?id=top">t</a> <a href="#top">here</a> <a href="/x">x</a></p>'


def test_routes_are_links_of_rendered_pages_only() -> None:
    plain, rendered = (
        parse_page(LINKS, content_type=f"text/html; charset=utf-8{more}", url="https://docs.test/")
        for more in ("", "; rendered")
    )
    assert isinstance(plain, ParsedPage)
    assert isinstance(rendered, ParsedPage)
    assert plain.links == ("https://docs.test/x",)
    assert rendered.links == ("https://docs.test/#/guide", "https://docs.test/x")


@pytest.mark.parametrize(
    "page",
    [
        "<body><redoc spec-url='api/openapi.yaml'></redoc><script src=redoc.standalone.js></script>",
        "<body><div id=r></div><script>Redoc.init('api/openapi.yaml', {}, document.getElementById('r'))</script>",
        "<body><div id=swagger-ui></div><script>ui = SwaggerUIBundle({ url:'api/openapi.yaml', dom_id: '#x'})</script>",
        "<body><script id='api-reference' data-url='api/openapi.yaml'></script>",
        "<body><elements-api apiDescriptionUrl='api/openapi.yaml'/><script src=x></script>",
    ],
)
def test_the_api_description_behind_a_page_is_read_instead(page: str) -> None:
    reading = parse_page(page.encode(), content_type="text/html", url="https://docs.test/x/index.html")
    assert isinstance(reading, ParsedPage)
    assert reading.moved_to == "https://docs.test/x/api/openapi.yaml"
    assert not reading.is_js_shell, "it need not be rendered"


def test_an_example_of_such_a_page_is_a_page() -> None:
    page = b"<body><h1>Setup</h1><pre>SwaggerUIBundle({url: '/openapi.json'})</pre>"
    reading = parse_page(page, content_type="text/html", url="https://docs.test/x")
    assert isinstance(reading, ParsedPage)
    assert reading.moved_to is None
