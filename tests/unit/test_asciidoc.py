"""AsciiDoc."""

import time

import pytest

from kept.extract.asciidoc.lines import find_includes
from kept.extract.asciidoc.reader import extract
from kept.extract.reader import guess_content_type, parse_page
from kept.extract.sections import Extraction, SectionNode
from kept.model.companions import Companions
from kept.model.document import ParsedPage

PAGE = """= The Guide
Ann Author <a@b.example>
:name: Tide

Intro with *bold*, _em_, `code`, {name}, https://example.org/[the site], <<install,Install it>> and linkgit:git-add[1].

ifdef::env-github[]
hidden
endif::[]

[[install]]
== Install it

.A title
[source,python]
----
print(1) # <1>
----
<1> Prints

NOTE: Mind the gap.

[WARNING]
====
Body

* one
** nested
* two
+
attached
====

`-a`::
`--all`::
\tEverything.
+
--
deep::
\tInner.
--
`-b`:: Other.

After the list.

=== Sub-section & more

[cols="1,2",options="header"]
|===
|A |B
|1 |2
|3
|4 \\| x
|===

include::other.adoc[]

 literal text
   here
"""
MARKDOWN = """Intro with **bold**, *em*, `code`, Tide, [the site](https://example.org/), [Install it](#install)
and git-add(1).

## Install it

**A title**

```python
print(1) # <1>
```

1. Prints

> **Note**
>
> Mind the gap.

> **Warning**
>
> Body
>
> - one
>   - nested
> - two
>
>   attached

### `-a`, `--all`

Everything.

#### deep

Inner.

### `-b`

Other.

After the list.

### Sub-section & more

| A | B |
| --- | --- |
| 1 | 2 |
| 3 | 4 \\| x |

(Included: `other.adoc`)

```
literal text
  here
```"""
GIT_PAGE = """tide(1)
=======

NAME
----
tide - Tell the height

SYNOPSIS
--------
[verse]
'tide' [--all]

OPTIONS
-------
-a::
--all::
\tAll ports, see linkgit:ls[1].
"""


def read(text: str) -> Extraction:
    answer = extract(text.encode(), None)
    assert isinstance(answer, Extraction)
    return answer


def headings(node: SectionNode) -> list[tuple[str, int, str | None]]:
    found: list[tuple[str, int, str | None]] = []
    for child in node.children:
        found += [(child.heading, child.level, child.anchor), *headings(child)]
    return found


def test_a_page_is_read() -> None:
    answer = read(PAGE)
    assert answer.title == "The Guide"
    assert answer.markdown == MARKDOWN.replace("#install)\nand", "#install) and")
    assert answer.hrefs == ["https://example.org/"]
    assert headings(answer.tree) == [
        ("Install it", 2, "install"),
        ("-a, --all", 3, "a"),
        ("deep", 4, "deep"),
        ("-b", 3, "b"),
        ("Install it", 2, "install"),  # goes on after its entries
        ("Sub-section & more", 3, "_sub_section_more"),
    ]


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        ("What's new?", "_whats_new"), ("A.B-c d", "_a_b_c_d"), ("`code` here", "_code_here"),
        ("Größe", "_größe"), ("-- x --", "_x"),
    ],
)  # fmt: skip
def test_sections_have_the_ids_of_asciidoctor(title: str, anchor: str) -> None:
    assert [node.anchor for node in read(f"== {title}\n\n== {title}\n").tree.children] == [anchor, f"{anchor}_2"]


@pytest.mark.parametrize(
    ("source", "markdown"),
    [
        ("'''\n\n// comment\ntext", "text"),
        ("++++\n<script>x</script>\n++++", ""),
        ("....\n  a\n b\n....", "```\n  a\n b\n```"),
        ("```ruby\nx\n```", "```ruby\nx\n```"),
        ("____\nsaid\n____", "> said"),
        ('ifeval::["{x}" == "1"]\nno\nendif::[]\nifndef::x[yes]', "yes"),
        ("1. one\n2. two\n\n. three", "1. one\n2. two\n3. three"),
        ("a +\nb", "a\\\nb"),
        ("see xref:other.adoc#x[there] or `+{x}+` or \\{x}", "see [there](other.adoc#x) or `{x}` or {x}"),
        ("a_b_c and a*b*c", "a_b_c and a\\*b\\*c"),
    ],
)
def test_blocks_and_text(source: str, markdown: str) -> None:
    assert read(source).markdown == markdown


def test_included_files_are_read_where_the_crawl_has_found_them() -> None:
    page = "= T\n\ninclude::a.adoc[]\n\n----\ninclude::b.py[tag=x]\n----\n\ninclude::missing.adoc[]"
    files = {"a.adoc": b"== A\n\ninclude::a.adoc[]\n", "b.py": b"no\n# tag::x[]\nyes\n# end::x[]\nno"}
    answer = extract(page.encode(), None, companions=Companions(files=files))
    assert isinstance(answer, Extraction)
    assert answer.markdown == "## A\n\n(Included: `a.adoc`)\n\n```\nyes\n```\n\n(Included: `missing.adoc`)"
    assert find_includes(page) == ["a.adoc", "b.py", "missing.adoc"]
    bomb = {name: f"include::{chr(ord(name) + 1)}[]\n".encode() * 10 for name in "abcdefghi"}
    bounded = extract(b"include::a[]", None, companions=Companions(files=bomb))
    assert isinstance(bounded, Extraction)
    assert len(bounded.markdown) < 5_000_000


def test_a_text_file_is_recognised() -> None:
    answer = parse_page(GIT_PAGE.encode(), content_type="text/plain", url="file:///d/tide.txt")
    assert isinstance(answer, ParsedPage)
    assert [section.heading for section in answer.content.sections] == ["NAME", "SYNOPSIS", "OPTIONS", "-a, --all"]
    assert guess_content_type("a/b.adoc") == "text/asciidoc"


@pytest.mark.parametrize(
    "page",
    [
        "====\n" * 5_000, "".join("=" * (4 + i) + "\n" for i in range(800)), "* a\n** b\n" * 5_000, "a:: b\n" * 10_000,
        "".join(":" * 2 + "\n" + "a" * i + "::\n" for i in range(300)),
        ":a: " + "x" * 1_000 + "\n" + ":a: {a}{a}\n" * 200 + "{a}" * 1_000,
        "*a _b `c " * 20_000, "<<" * 50_000, "link:a[" * 20_000, "[[" * 50_000, "(((" * 50_000,
        "|===\n" + "|a" * 50_000, "ifdef::a[]\n" * 20_000, "[" * 100_000, "'a " * 30_000,
        "http://a[" * 20_000, "a\n" * 100_000, "a :" * 40_000,
    ],
    ids=range(18),
)  # fmt: skip
def test_a_hostile_page_takes_bounded_time(page: str) -> None:
    start = time.process_time()
    assert len(read(page).markdown) < 50 * len(page) + 3_000_000
    assert time.process_time() - start < 4
