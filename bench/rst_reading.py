"""Measure how reStructuredText is read as it is written, beside the rendered manual of the same version.

    python bench/rst_reading.py [--pages 150] [--manual django] [--missing]

Sources and rendered pages come from packages: source archives of PyPI and Debian, manuals of Debian; they are fetched
once, into --folder. What is expected is counted on the rendered page without any reader: headings by their words, code
blocks by their words and language, documented objects by their ids, links inside the manual by the page they lead to.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

from kept.crawl.companions import CompanionFinder
from kept.extract.reader import guess_content_type, parse_page
from kept.extract.sections import Unreadable
from kept.model.companions import NO_COMPANIONS
from kept.model.document import ParsedPage
from kept.model.frontier import Fetched
from kept.model.source import Limits, Scope
from kept.model.url import file_url
from kept.origins.folder import FolderOrigin


@dataclass(frozen=True)
class Manual:
    package: str  # of Debian, with the rendered pages
    html: str  # their folder in it
    source: str  # PyPI's name and version, or Debian's source package
    sources: str  # the folder of the pages in its archive
    extension: str


SHARE = "usr/share/doc"
MANUALS = {
    "django": Manual("python-django-doc", f"{SHARE}/python-django-doc/html", "pypi:Django", "docs", ".txt"),
    "python": Manual("python3.11-doc", f"{SHARE}/python3.11/html", "debian:python3.11", "Doc", ".rst"),
    "sphinx": Manual("sphinx-doc", f"{SHARE}/sphinx-doc/html", "pypi:Sphinx", "doc", ".rst"),
    "knot": Manual("knot-doc", f"{SHARE}/knot-doc", "debian:knot", "doc", ".rst"),
}
KINDS = ("headings", "code", "language", "objects", "links")
OBJECTS = "dt.sig[id], dl.glossary > dt[id], span.target[id^='module-'], section[id^='module-'], span[id^='std-'][id]"
OUTSIDE = (
    "a.headerlink, a.viewcode-link, .viewcode-link, .contents, .linenos, script, .section-number, "
    ".c-content-win, .toctree-l2"  # Django's second form of commands; the titles inside other pages
)
AUTODOC = re.compile(r"^[ \t]*\.\. auto\w+::", re.MULTILINE)
WORD = re.compile(r"\w+")
FENCE = re.compile(r"^[ >]*(`{3,})([^`\n]*)\n(.*?)^[ >]*\1", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(<?([^()<>\s]+)>?\)")
LANGUAGE = re.compile(r"\bhighlight-([\w+.-]+)")
SAME_LANGUAGE = {
    "python3": "python", "pycon3": "python", "pycon": "python", "py": "python", "default": "", "none": "", "text": "",
    "guess": "", "shell": "sh", "c++": "cpp", "rest": "rst",
}  # fmt: skip
BASE = "file:///manual/"


def words(text: str) -> str:
    return " ".join(WORD.findall(text))


# ── The packages ──────────────────────────────────────────────────────────────────────────────────────────────────────


def run(*command: str, cwd: Path) -> None:
    subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def fetch(manual: Manual, folder: Path) -> tuple[Path, Path]:
    """Return the folders of the sources and of the rendered pages, fetched unless they are there."""
    root = folder / manual.package
    html, unpacked = root / "rendered", root / "source"
    if not html.is_dir():
        root.mkdir(parents=True, exist_ok=True)
        run("apt-get", "download", manual.package, cwd=root)
        run("dpkg-deb", "-x", str(next(root.glob("*.deb"))), str(html), cwd=root)
    if not unpacked.is_dir():
        version = re.search(r"_(?:\d+%3a)?([\d.]+)", next(root.glob("*.deb")).name)
        registry, _, name = manual.source.partition(":")
        if registry == "pypi":
            version_text = version[1] if version else ""
            run(
                sys.executable,
                "-m",
                "pip",
                "download",
                "--no-deps",
                "--no-binary",
                ":all:",
                f"{name}=={version_text}",
                cwd=root,
            )
        else:
            download_debian_source(name, root)
        archive = next(
            path
            for path in root.iterdir()
            if ".tar." in path.name and "debian" not in path.name and path.suffix != ".asc"
        )
        unpacked.mkdir()
        run("tar", "xf", str(archive), "--strip-components=1", "-C", str(unpacked), cwd=root)
    return unpacked / manual.sources, html / manual.html


def download_debian_source(name: str, folder: Path) -> None:
    """Download a source package's original archive, with lists of packages of our own: most machines have none."""
    lists = folder / "apt"
    for part in ("lists/partial", "cache/archives/partial", "parts"):
        (lists / part).mkdir(parents=True, exist_ok=True)
    for path in Path("/etc/apt/sources.list.d").glob("*.sources"):
        (lists / "parts" / path.name).write_text(re.sub(r"(?m)^Types: deb$", "Types: deb-src", path.read_text()))
    options = [
        *("-o", "Dir::Etc::sourcelist=-", "-o", f"Dir::Etc::sourceparts={lists}/parts"),
        *("-o", f"Dir::State::lists={lists}/lists", "-o", f"Dir::Cache={lists}/cache", "-o", "APT::Sandbox::User=root"),
    ]
    run("apt-get", "-q", *options, "update", cwd=folder)
    # The newest archive of Debian's own changes may be gone from the mirror; the original is the one that counts.
    subprocess.run(
        ["apt-get", "-q", *options, "source", "--download-only", name], cwd=folder, check=False,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


# ── What the rendered page has ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Rendered:
    headings: Counter[str]
    code: Counter[str]
    languages: list[tuple[str, str]]  # words and language of the blocks that have one
    objects: set[str]
    links: Counter[str]  # pages of the manual, without fragments


def read_rendered(path: Path, root: Path, known: set[str]) -> Rendered:
    page = LexborHTMLParser(path.read_bytes())
    body = page.css_first("div.body[role=main], div.yui-g, div.body, [role=main]") or page.body
    assert body is not None
    for node in body.css(OUTSIDE):
        node.decompose()
    blocks = [(words(pre.text()), block_language(pre)) for pre in body.css("pre")]
    here = path.relative_to(root).as_posix()
    links: Counter[str] = Counter()
    for node in body.css("dt.sig a, .stableabi, .versionmodified a"):
        node.decompose()  # what the generator adds to signatures
    for node in body.css("a.reference.internal[href]"):
        target = urljoin(BASE + here, node.attributes["href"] or "").partition("#")[0].removeprefix(BASE)
        if target != here and target in known:
            links[target] += 1
    return Rendered(
        headings=Counter(words(node.text()) for node in body.css("h1, h2, h3, h4, h5, h6") if words(node.text())),
        code=Counter(text for text, _ in blocks if text),
        languages=[(text, language) for text, language in blocks if text and language],
        objects={node.attributes["id"] or "" for node in body.css(OBJECTS)},
        links=links,
    )


def block_language(pre: LexborNode) -> str:
    node: LexborNode | None = pre
    while node is not None:
        if match := LANGUAGE.search(node.attributes.get("class") or ""):
            return SAME_LANGUAGE.get(match[1], match[1])
        node = node.parent
    return ""


# ── What the source gives ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Result:
    expected: Counter[str]
    found: Counter[str]
    missing: list[str]


def compare(path: Path, root: Path, rendered: Rendered, extension: str, finder: CompanionFinder) -> Result:
    expected: Counter[str] = Counter()
    found: Counter[str] = Counter()
    missing: list[str] = []

    def count(kind: str, item: str, is_found: bool, times: int = 1) -> None:
        expected[kind] += times
        found[kind] += times * is_found
        if not is_found:
            missing.append(f"{kind:9} {path.relative_to(root)}: {item[:140]}")

    url = BASE + path.relative_to(root).as_posix()
    page = read_source(path, finder)
    if isinstance(page, Unreadable):
        print("unreadable", path, page.reason)
        return Result(Counter({"headings": 1}), found, missing)
    content = page.content
    headings = Counter(words(section.heading) for section in content.sections)
    fences = [(words(match[3].replace("\n> ", "\n")), match[2].strip()) for match in FENCE.finditer(content.markdown)]
    code = Counter(text for text, _ in fences)
    in_spans = words(" ".join(SPAN.findall(content.markdown)))
    for heading, times in rendered.headings.items():
        count("headings", heading, headings[heading] >= times or f"**{heading}" in content.markdown, times)
    for text, times in rendered.code.items():
        count("code", text, code[text] >= times or text in in_spans, times)
    by_text: dict[str, set[str]] = {}
    for text, language in fences:
        by_text.setdefault(text, set()).add(SAME_LANGUAGE.get(language, language))
    for text, language in rendered.languages:
        count("language", f"{language}: {text}", language in by_text.get(text, set()))
    anchors = {section.anchor for section in content.sections} | {place.anchor for place in content.places}
    for name in rendered.objects:
        count("objects", name, name in anchors)
    links: Counter[str] = Counter()
    for href in LINK.findall(content.markdown):
        target = unquote(urljoin(url, href)).partition("#")[0].removeprefix(BASE)
        links[target.removesuffix(extension) + ".html"] += 1
    for target, times in rendered.links.items():
        have = min(times, links[target])
        expected["links"] += times
        found["links"] += have
        if have < times:
            missing.append(f"links     {path.relative_to(root)}: {times - have} of {times} to {target}")
    return Result(expected, found, missing)


def read_source(path: Path, finder: CompanionFinder) -> ParsedPage | Unreadable:
    """Read a page as a crawl of the folder would: with what it includes and refers to."""
    fetched = Fetched(body=path.read_bytes(), content_type="text/plain")
    companions = asyncio.run(finder.find(fetched, file_url(str(path)))) or NO_COMPANIONS
    return parse_page(fetched.body, content_type="text/plain", url=file_url(str(path)), companions=companions)


def pairs(sources: Path, html: Path, extension: str) -> Iterator[tuple[Path, Path]]:
    for path in sorted(sources.rglob(f"*{extension}")):
        rendered = html / path.relative_to(sources).with_suffix(".html")
        # What autodoc shows is in the code, which is no part of the page as it is written.
        if rendered.is_file() and not AUTODOC.search(path.read_text("utf-8", "replace")):
            yield path, rendered


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=150)
    parser.add_argument("--manual", choices=MANUALS)
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / f"kept-rst-{os.getuid()}")
    arguments = parser.parse_args()
    print(f"{'manual':9} {'pages':>5} " + " ".join(f"{kind:>16}" for kind in KINDS) + f" {'ms/page':>8}")
    for name in [arguments.manual] if arguments.manual else list(MANUALS):
        manual = MANUALS[name]
        sources, html = fetch(manual, arguments.folder)
        found_pairs = list(pairs(sources, html, manual.extension))
        origin = FolderOrigin(
            file_url(str(sources.parents[manual.sources.count("/")])),
            scope=Scope(), limits=Limits(), type_of=guess_content_type,
        )  # fmt: skip
        finder = CompanionFinder(origin)
        known = {path.relative_to(html).as_posix() for _, path in found_pairs}
        chosen = random.Random(0).sample(found_pairs, min(arguments.pages, len(found_pairs)))
        expected: Counter[str] = Counter()
        kept: Counter[str] = Counter()
        missing: list[str] = []
        seconds = 0.0
        for path, rendered in chosen:
            page = read_rendered(rendered, html, known)
            started = time.process_time()
            result = compare(path, sources, page, manual.extension, finder)
            seconds += time.process_time() - started
            expected += result.expected
            kept += result.found
            missing += result.missing
        shares = [
            f"{kept[kind]:>6}/{expected[kind]:<5}{100 * kept[kind] / max(expected[kind], 1):5.1f}" for kind in KINDS
        ]
        print(
            f"{name:9} {len(chosen):>5} "
            + " ".join(f"{share:>16}" for share in shares)
            + f" {1000 * seconds / max(len(chosen), 1):8.0f}"
        )
        if arguments.missing:
            print("\n".join(missing))


if __name__ == "__main__":
    main()
