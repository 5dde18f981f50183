"""The choice of a reader, and parsed pages."""

import re
import subprocess
import sys

import pytest

from kept.extract import reader
from kept.extract.reader import SectionRules, Unreadable, guess_content_type, parse_page, pipeline_signature
from kept.model.document import ParsedPage
from kept.model.source import Region

PAGE = b"# Title\n\nSee [the other](other.md#part) and [home](/).\n"
URL = "https://docs.example.org/guide/page.md"


def reading(body: bytes = PAGE, *, content_type: str = "text/markdown", url: str = URL) -> ParsedPage:
    answer = parse_page(body, content_type=content_type, url=url)
    assert isinstance(answer, ParsedPage)
    return answer


def test_what_sphinx_built_a_page_from_is_left_out() -> None:
    url = "https://docs.example.org/_sources/guide/page.md.txt"
    assert isinstance(parse_page(PAGE, content_type="text/plain", url=url), Unreadable)


def test_a_parsed_page_has_the_content_and_the_resolved_links() -> None:
    answer = reading()
    assert answer.content.title == "Title"
    assert answer.content.markdown == "# Title\n\nSee [the other](other.md#part) and [home](/)."
    assert [section.anchor for section in answer.content.sections] == ["title"]
    assert answer.links == ("https://docs.example.org/guide/other.md", "https://docs.example.org/")


def test_the_same_page_has_the_same_content_at_any_url() -> None:
    here, there = reading(), reading(url="file:///somewhere/else/readme.md")
    assert here.content == there.content
    assert here.links != there.links


def test_the_canonical_url_of_markdown_on_a_site_has_no_extension() -> None:
    assert reading().canonical == "https://docs.example.org/guide/page"
    assert (
        reading(url="https://docs.example.org/guide/page.html.md").canonical
        == "https://docs.example.org/guide/page.html"
    )
    assert reading(url="https://docs.example.org/guide/page").canonical is None
    assert reading(url="file:///guide/page.md").canonical is None
    assert "https://docs.example.org/guide/page" not in reading().links


def test_other_rules_give_other_sections_and_another_hash() -> None:
    long = PAGE + b"\n\n" + b"word " * 1_000
    answer = parse_page(long, content_type="text/markdown", url=URL, rules=SectionRules(target_characters=200))
    assert isinstance(answer, ParsedPage)
    assert len(answer.content.sections) > len(reading(long).content.sections)
    assert answer.content.hash != reading(long).content.hash


@pytest.mark.parametrize(
    ("content_type", "url", "has_headings"),
    [
        ("text/markdown", "https://a.org/x", True),
        ("TEXT/X-Markdown; variant=GFM", "https://a.org/x.txt", True),
        ("text/plain; charset=utf-8", "https://a.org/x.md?raw=1#top", True),
        ("text/plain", "https://a.org/x.txt", False),
        ("text/plain", "https://a.org/docs", False),
        ("", "file:///a/READ%4de.MD", True),
        ("application/octet-stream", "https://a.org/guide.mdx", True),
        ("text/x-rst", "https://a.org/index", False),
        ("", "file:///a/README", False),
    ],
)
def test_a_reader_is_picked_by_type_or_by_name_if_the_type_is_uninformative(
    content_type: str, url: str, has_headings: bool
) -> None:
    assert bool(reading(content_type=content_type, url=url).content.title) == has_headings


@pytest.mark.parametrize(
    ("content_type", "url"),
    [
        ("image/png", "https://a.org/x.md"),
        ("application/octet-stream", "https://a.org/x.bin"),
        ("", "https://a.org/x"),
        ("nonsense", "https://a.org/x.md"),
    ],
)
def test_a_type_without_a_reader_is_unreadable_with_that_reason(content_type: str, url: str) -> None:
    answer = parse_page(PAGE, content_type=content_type, url=url)
    assert isinstance(answer, Unreadable)
    assert "no reader for" in answer.reason


def test_the_declared_charset_reaches_the_reader() -> None:
    answer = reading("# Привет".encode("koi8-r"), content_type='text/markdown; Charset="KOI8-R"')
    assert answer.content.title == "Привет"


def test_binary_data_declared_as_a_page_is_unreadable() -> None:
    assert isinstance(parse_page(b"\x00\x01\x02", content_type="", url="file:///a/b.md"), Unreadable)


def test_a_page_of_too_many_sections_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "SECTIONS_PER_CONTENT", 2)
    answer = parse_page(b"# a\n# b\n# c\n", content_type="text/markdown", url=URL)
    assert answer == Unreadable(reason="it would take more than 2 sections")


@pytest.mark.parametrize(
    ("name", "content_type"),
    [
        ("guide.md", "text/markdown"),
        ("docs/GUIDE.Markdown", "text/markdown"),
        ("page.mdx", "text/markdown"),
        ("llms.txt", "text/markdown"),
        ("notes.txt", "text/plain"),
        ("index.rst", "text/x-rst"),
        ("README", "text/plain"),
        ("a.b/CHANGELOG", "text/plain"),
        ("Manual.DOCX", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("slides.pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
        ("prices.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("book.epub", "application/epub+zip"),
        ("api/openapi.yaml", "application/yaml"),
        ("swagger.yml", "application/yaml"),
        ("asyncapi.json", "application/json"),
        ("v1/pets-openapi.json", "application/json"),
        ("config.yaml", None),
        ("data.json", None),
        ("main.py", None),
        ("picture.png", None),
        ("md", None),
        (".md", None),
        ("archive.md.gz", None),
        ("", None),
    ],
)
def test_a_file_is_documentation_by_its_name(name: str, content_type: str | None) -> None:
    assert guess_content_type(name) == content_type


def test_the_signature_changes_with_readers_and_rules_and_with_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    today = pipeline_signature(SectionRules())
    assert today == pipeline_signature()
    assert re.fullmatch("[0-9a-f]{16}", today)
    assert pipeline_signature(SectionRules(max_characters=5_000)) != today
    monkeypatch.setitem(reader._READERS, "text/plain", reader.ReaderSpec("text", 999))
    assert pipeline_signature() != today
    monkeypatch.undo()
    monkeypatch.setattr(reader, "installed_version", lambda library: "999" if library == "selectolax" else "")
    assert pipeline_signature() != today


def test_the_signature_does_not_import_the_libraries_of_the_readers() -> None:
    program = "import sys, kept.extract.reader; print('markdown_it' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                            env={"PYTHONPATH": ":".join(sys.path)})  # fmt: skip
    assert answer.stdout.strip() == "False"


def test_another_region_gives_another_signature_and_the_default_does_not() -> None:
    regions = [Region(), Region(select="main"), Region(drop=("main",)), Region(drop=("main", "nav"))]
    assert len({pipeline_signature(region=region) for region in regions}) == len(regions)
    assert pipeline_signature(region=Region()) == pipeline_signature()


def test_only_html_has_regions() -> None:
    answers = [
        parse_page(b"<main><p>one</p></main><p>two</p>", content_type=kind, url=URL, region=Region(select="main"))
        for kind in ("text/html", "text/markdown")
    ]
    assert [isinstance(answer, ParsedPage) and "two" in answer.content.markdown for answer in answers] == [False, True]


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://docs.test/guide/index.html", "https://docs.test/guide/"),
        ("https://docs.test/index.htm", "https://docs.test/"),
        ("https://docs.test/guide/", None),
        ("https://docs.test/genindex.html", None),
        ("file:///docs/index.html", None),
    ],
)
def test_the_canonical_url_of_an_index_page_is_its_folder(url: str, canonical: str | None) -> None:
    reading = parse_page(b"<h1>Guide</h1>", content_type="text/html", url=url)
    assert isinstance(reading, ParsedPage)
    assert reading.canonical == canonical
    assert canonical not in reading.links, "it is not a link"
