"""Measure how much of pages in source formats the readers keep, beside the pages that their own tools make of them.

    python bench/format_reading.py [man] [asciidoc] [--pages 300] [--missing 20]

man         manual pages of Debian packages against the HTML that mandoc makes of them
asciidoc    git's documentation against the HTML beside it; items of files that a page includes are counted apart

Packages are fetched with apt-get into a folder of the user's cache and unpacked there; nothing is installed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

from kept.extract.asciidoc.lines import find_includes, looks_like_asciidoc
from kept.extract.asciidoc.reader import extract as extract_asciidoc
from kept.extract.man.reader import extract as extract_man
from kept.extract.sections import Extraction, SectionNode
from kept.model.companions import Companions

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kept-bench"
MANUAL_PACKAGES = (
    *("git-man", "coreutils", "bash", "zsh-common", "openssh-client", "manpages", "manpages-dev", "tar", "curl"),
    *("perl-doc", "rsync", "tmux", "iproute2", "util-linux", "systemd", "libssl-doc", "tcl8.6-doc", "openssl", "tcsh"),
    *(
        "libbsd-dev",
        "libarchive-dev",
        "postgresql-client-15",
        "mandoc",
        "groff",
        "jq",
        "sudo",
        "xz-utils",
        "libcurl4-doc",
    ),
)
FENCED = re.compile(r"^[ >]*(`{3,})[^`\n]*\n(.*?)^[ >]*\1$", re.DOTALL | re.MULTILINE)


class Score:
    """What was expected and what was kept, by kind, and a sample of what was not."""

    def __init__(self) -> None:
        self.expected: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()
        self.missing: list[str] = []

    def count(self, kind: str, is_kept: bool, sample: str) -> None:
        self.expected[kind] += 1
        self.kept[kind] += is_kept
        if not is_kept:
            self.missing.append(f"{kind}: {sample[:150]!r}")

    def __str__(self) -> str:
        return " · ".join(
            f"{kind} {self.kept[kind]}/{total} ({100 * self.kept[kind] / total:.1f} %)"
            for kind, total in self.expected.items()
        )


def letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)


def headings(node: SectionNode) -> Iterator[str]:
    for child in node.children:
        yield child.heading
        yield from headings(child)


def code_of(markdown: str) -> str:
    return letters("".join(match[2] for match in FENCED.finditer(markdown)))


def unpacked(*packages: str) -> Path:
    """Return the folder in which Debian packages are unpacked."""
    root = CACHE / "root"
    root.mkdir(parents=True, exist_ok=True)
    for package in packages:
        if not list(CACHE.glob(f"{package}_*.deb")):
            subprocess.run(["apt-get", "download", package], cwd=CACHE, check=True, capture_output=True)
            (archive,) = CACHE.glob(f"{package}_*.deb")
            subprocess.run(["dpkg", "-x", archive, root], check=True)
    return root


def measure_man(pages: int) -> Score:
    root = unpacked(*MANUAL_PACKAGES)
    mandoc = root / "usr/bin/mandoc"
    files = sorted((root / "usr/share/man").glob("man*/*.gz"))
    families: dict[tuple[str, str], list[Path]] = {}
    for file in files:  # not hundreds of pages of one project
        families.setdefault((file.parent.name, file.name[:3]), []).append(file)
    chance = random.Random(1)
    chosen = [chance.choice(family) for family in chance.sample(list(families.values()), min(pages, len(families)))]
    score = Score()
    for file in chosen:
        html = subprocess.run([mandoc, "-T", "html", file], capture_output=True, check=False).stdout
        body = LexborHTMLParser(html).css_first(".manual-text")
        answer = extract_man(file.read_bytes(), None)
        score.count("pages", isinstance(answer, Extraction), file.name)
        if body is None or not isinstance(answer, Extraction):
            continue
        names, code = {letters(name) for name in headings(answer.tree)}, code_of(answer.markdown)
        for node in body.css("h1, h2"):
            score.count("headings", letters(node.text()) in names, f"{file.name} {node.text()}")
        for node in body.css("pre"):
            score.count("code blocks", letters(node.text()) in code, f"{file.name} {node.text()}")
        for node in body.css("dt[id]"):
            score.count("named terms", letters(node.text()) in names, f"{file.name} {node.text()}")
        words = set(re.findall(r"\w\w+", answer.markdown.replace("\\", "")))
        for word in re.findall(r"\w\w+", body.text(separator="")):
            score.count("words", word in words, f"{file.name} {word}")
    return score


def included_files(page: Path) -> dict[str, bytes]:
    """Return the files that a page includes, as a crawl finds them."""
    files: dict[str, bytes] = {}
    pending = [(name, page) for name in find_includes(page.read_text("utf-8"))]
    while pending:
        name, base = pending.pop()
        path = next((path for path in (page.parent / name, base.parent / name) if path.is_file()), None)
        if path is not None and name not in files:
            files[name] = path.read_bytes()
            pending += [(inner, path) for inner in find_includes(path.read_text("utf-8"))]
    return files


def measure_asciidoc(pages: int) -> Score:
    folder = unpacked("git-doc") / "usr/share/doc/git-doc"
    score = Score()
    for file in sorted([*folder.glob("*.txt"), *folder.glob("*/*.txt")])[: max(pages, 300)]:
        html = file.with_suffix(".html")
        if not html.exists():
            continue
        source = file.read_text("utf-8")
        score.count("recognised", looks_like_asciidoc(source), file.name)
        answer = extract_asciidoc(file.read_bytes(), None, companions=Companions(files=included_files(file)))
        if not isinstance(answer, Extraction):
            continue
        document = LexborHTMLParser(html.read_bytes())
        body = document.css_first("#content") or document.body
        assert body is not None, "an HTML page has a body"
        names, code = {letters(name) for name in headings(answer.tree)}, code_of(answer.markdown)
        words = letters(answer.markdown)
        apart = " with includes" if re.search("^include::", source, re.MULTILINE) else ""
        for node in body.css("h2, h3, h4, h5"):
            score.count(f"headings{apart}", letters(node.text()) in names, f"{file.name} {node.text()}")
        for node in body.css("pre"):
            score.count(f"code blocks{apart}", letters(node.text()) in code, f"{file.name} {node.text()}")
        for node in body.css("dt"):
            score.count(f"terms{apart}", letters(node.text()) in words, f"{file.name} {node.text()}")
    return score


FORMATS: dict[str, Callable[[int], Score]] = {"man": measure_man, "asciidoc": measure_asciidoc}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=f"of {', '.join(FORMATS)}; all without any")
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--missing", type=int, default=0, help="show so many items that were not kept")
    arguments = parser.parse_args()
    for name in arguments.formats or FORMATS:
        if name not in FORMATS:
            sys.exit(f"{name} is none of {', '.join(FORMATS)}.")
        score = FORMATS[name](arguments.pages)
        print(f"{name}: {score}")
        for item in score.missing[: arguments.missing]:
            print(f"  {item}")


if __name__ == "__main__":
    main()
