"""Manual pages."""

import gzip
import time
from itertools import pairwise

import pytest

from kept.extract.man.reader import extract
from kept.extract.reader import guess_content_type
from kept.extract.sections import Extraction, SectionNode, Unreadable

MAN = r""".\" A comment.
.TH TIDE 1 2026-01-01
.ds Pr the program
.SH NAME
tide \- tell the height of the water
.SH SYNOPSIS
.B tide
.RI [ option ]...
.SH OPTIONS
.TP
.BR \-a ", " \-\-all
List \fIall\fP ports, as \*(Pr does; see
.BR ls (1)
and snake_case.
.TP
.BI \-\-at= TIME
At a time:
.RS
.TP
.B now
At once.
.IP \(bu 2
a bullet
.RE
.PP
After the options.
.SS Examples
.EX
$ tide \-\-all
  Ostend \e 4.2
.EE
.ie n \{\
.UR https://example.org/
The site
.UE .
.\}
.el never
.if t also never
.TS
tab(|);
lb lb
l l.
Port|Height
_
Ostend|T{
4.2 and
more
T}
.TE
"""
MAN_MARKDOWN = r"""## NAME

tide - tell the height of the water

## SYNOPSIS

**tide** [*option*]...

## OPTIONS

### `-a, --all`

List *all* ports, as the program does; see ls(1) and snake_case.

### `--at=TIME`

At a time:

#### `now`

At once.

- a bullet

After the options.

### Examples

```bash
$ tide --all
  Ostend \ 4.2
```

[The site](https://example.org/).

| Port | Height |
| --- | --- |
| Ostend | 4.2 and more |"""

MDOC = r""".Dd January 1, 2026
.Dt TIDE 1
.Os
.Sh NAME
.Nm tide
.Nd tell the height
.Sh SYNOPSIS
.Nm
.Op Fl av
.Op Fl o Ar file Ns = Ns Ar value
.Ar port ...
.Sh DESCRIPTION
.Nm
asks
.Dq the sea ,
see
.Xr ls 1 .
.Bl -tag -width Ds
.It Fl a
All.
.It Fl D Xo
.Sm off
.Oo Ar bind : Oc Ar port
.Sm on
.Xc
A port.
.Bl -bullet
.It
One.
.El
.El
.Bd -literal
code  here
.Ed
Done.
"""
MDOC_MARKDOWN = """## NAME

**tide** – tell the height

## SYNOPSIS

**tide** [`-av`] [`-o` *file*=*value*] *port* *...*

## DESCRIPTION

**tide** asks “the sea”, see ls(1).

### `-a`

All.

### `-D [bind:]port`

A port.

- One.

```
code  here
```

Done."""


def read(text: str | bytes) -> Extraction:
    answer = extract(text.encode() if isinstance(text, str) else text, None)
    assert isinstance(answer, Extraction)
    return answer


def headings(node: SectionNode) -> list[tuple[str, int, str | None]]:
    found = [(child.heading, child.level, child.anchor) for child in node.children]
    return [entry for child, own in zip(node.children, found, strict=True) for entry in [own, *headings(child)]]


def test_a_page_of_man_macros_is_read() -> None:
    answer = read(MAN)
    assert answer.title == "tide(1)"
    assert answer.markdown == MAN_MARKDOWN
    assert answer.hrefs == ["https://example.org/"]
    assert headings(answer.tree) == [
        ("NAME", 2, "NAME"),
        ("SYNOPSIS", 2, "SYNOPSIS"),
        ("OPTIONS", 2, "OPTIONS"),
        ("-a, --all", 3, "a"),
        ("--at=TIME", 3, "at"),
        ("now", 4, "now"),
        ("--at=TIME", 3, "at"),  # goes on after the entries in it
        ("OPTIONS", 2, "OPTIONS"),
        ("Examples", 3, "Examples"),
    ]


def test_a_page_of_mdoc_macros_is_read() -> None:
    answer = read(MDOC)
    assert (answer.title, answer.markdown) == ("tide(1)", MDOC_MARKDOWN)


def test_a_term_that_docbook_indents_under_is_an_entry() -> None:
    page = ".TH x 1\n.SH OPTIONS\n.PP\n\\-a, \\-\\-all\n.RS 4\nText\\&.\n.RE\n.PP\nAfter.\n"
    assert read(page).markdown == "## OPTIONS\n\n### `-a, --all`\n\nText.\n\nAfter."


def test_a_compressed_page_is_the_same_page() -> None:
    assert read(gzip.compress(MAN.encode())) == read(MAN)


def test_a_page_that_names_another_one_refers_to_it() -> None:
    assert read(".so man1/zmore.1\n").markdown == "See zmore(1)."


@pytest.mark.parametrize(
    ("name", "is_page"),
    [
        ("git-commit.1", True), ("git-commit.1.gz", True), ("Git::Repo.3pm", True), ("ld.so.8", True),
        ("libtide.so.1", False), ("app.log.1", False), ("tide.10", False), (".1", False), ("notes.md", False),
    ],
)  # fmt: skip
def test_pages_are_found_by_name(name: str, is_page: bool) -> None:
    assert (guess_content_type(f"/usr/{name}") == "text/troff") == is_page


@pytest.mark.parametrize(
    "body",
    [
        b"Notes of the first meeting.\n",
        b"\x7fELF\0\0\0",
        gzip.compress(b"x"),
        gzip.compress(MAN.encode())[:60],
        b"\x1f\x8b",
    ],
)
def test_what_only_has_the_name_of_a_page_is_refused(body: bytes) -> None:
    assert isinstance(extract(body, None), Unreadable)


@pytest.mark.parametrize(
    "page",
    [
        ".TH x 1\n.de A\n.B \\\\$1\n.A x\n.A x\n..\n.A y\n" + ".A z\n" * 2_000,
        ".TH x 1\n.ds a aaaaaaaaaa\n"
        + "".join(f".ds {b} " + f"\\*{a}" * 10 + "\n" for a, b in pairwise("abcdefghij"))
        + "\\*j",
        ".TH x 1\n.TP\n" + ".RS\n.TP\nx\n" * 5_000,
        ".TH x 1\n.SH A\n" + "\\f" * 200_000,
        ".TH x 1\n" + ".if 1 " * 5_000 + "x",
        ".TH x 1\n" + ".ie n \\{\\\n" * 5_000,
        ".Dd x\n.Dt X 1\n.Sh A\n" + ".Bl -tag\n.It x\n" * 5_000,
        ".Dd x\n.Dt X 1\n.Sh A\n.Op " + "Op Fl " * 5_000,
        ".TH x 1\n.TS\n" + "l l.\n" + "\t" * 100_000 + "\n.TE",
        ".TH x 1\n.SH A\n" + "\\h'" * 60_000,
        ".TH x 1\n.SH A\n" + "a \\fBb\\fR" * 30_000,
        ".TH x 1\n.SH A\n.B " + '"a' * 60_000,
        ".TH x 1\n" + "x\\\n" * 60_000,
        ".TH x 1\n" + "\\[" * 60_000,
        ".TH x 1\n" + "\\*[" * 60_000,
    ],
    ids=range(15),
)
def test_a_hostile_page_takes_bounded_time(page: str) -> None:
    start = time.process_time()
    assert len(read(page).markdown) < 20 * len(page) + 2_000_000
    assert time.process_time() - start < 3


def test_a_bomb_of_compression_is_refused() -> None:
    assert isinstance(extract(gzip.compress(b".TH x 1\n" + b"a" * 33_600_000), None), Unreadable)
