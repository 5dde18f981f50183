"""A reproducible folder of documentation, and its changes between two crawls.

Files are of unequal sizes, some have the same content, some lie deep. Each has one paragraph with the word
``everywhere``, so that one search finds every document, and the word of the stage in which it was last written.
"""

import os
import random
import time
from pathlib import Path

FILES = 300
WORDS = ("alder", "birch", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel", "ivy", "juniper", "larch", "oak")
SHARED = 12  # contents that two or more files have
SAME = "<head><link rel=canonical href=2.html></head><h1>Same</h1><p>This is found everywhere, and known by one name."


def plant(folder: Path, files: int = FILES) -> None:
    """Write the folder for the first crawl."""
    for number in range(files):
        _write(_path(folder, number), _text(number if number % 10 else f"shared {number % SHARED}", "planted"))


def repeat(folder: Path) -> None:
    """Write files with the same content, and say which of them is the original."""
    for number in range(4):
        _write(folder / "same" / f"{number}.html", SAME)


def tend(folder: Path) -> None:
    """Change some files and remove some for now."""
    files = _files(folder)
    for path in _some(files, 5, 15):
        _write(path, _text(f"tended {path.name}", "tended"))
    for path in _some(files, 20, 30):
        path.rename(_aside(folder) / path.name)


def graft(folder: Path) -> None:
    """Change files for a crawl that is given up; they change again before the next one."""
    files = _files(folder)
    for path in _some(files, 40, 60):
        _write(path, _text(f"grafted {path.name}", "grafted"))
    for number in range(len(files) // 40):
        _write(folder / "grafts" / f"{number}.md", _text(f"graft {number}", "grafted"))


def harvest(folder: Path) -> None:
    """Make every kind of change: new, changed, touched, moved, swapped, removed and restored files."""
    files = [path for path in _files(folder) if "grafts" not in path.parts]
    for path in _some(files, 50, 80):
        _write(path, _text(f"harvested {path.name}", "harvested"))
    for number in range(len(files) // 10):
        _write(folder / "new" / str(number % 4) / f"{number}.md", _text(f"new {number}", "harvested"))
    for path in _some(files, 80, 100):
        os.utime(path)  # the same bytes, another time
    for path in _unlike(_some(files, 100, 115)):
        path.rename(folder / "new" / f"moved {path.name}")
    for path in _some(files, 120, 130):
        path.unlink()
    unlike = _unlike(_some(files, 140, 150))
    for one, other in zip(unlike[::2], unlike[1::2], strict=False):
        one_text, other_text = one.read_text(), other.read_text()
        _write(one, other_text)
        _write(other, one_text)
    aside = sorted(_aside(folder).iterdir())
    for path in aside[:3]:
        path.rename(_path(folder, int(path.stem)))
    for path in _unlike(aside[3:6]):
        path.rename(folder / "new" / f"back {path.name}")


def clear_cut(folder: Path) -> None:
    """Remove so much that the generation is held."""
    files = _files(folder)
    for path in files[: len(files) // 2]:
        path.unlink()
    for path in files[-3:]:
        _write(path, _text(f"left {path.name}", "felled"))


def _path(folder: Path, number: int) -> Path:
    deep = ("guide", "reference/api", "reference/api/v2", ".")[number % 4]
    return folder / deep / f"{number:04}.md"


def _text(seed: object, stage: str) -> str:
    chance = random.Random(str(seed))
    lines = [f"# Notes on {' '.join(chance.sample(WORDS, 3))}\n"]
    for chapter in range(chance.choice((0, 0, 1, 1, 2, 6))):
        lines.append(f"{'#' * chance.randint(2, 4)} Chapter {chapter} of {chance.choice(WORDS)}\n")
        lines += [" ".join(chance.choices(WORDS, k=12)) + "." for _ in range(chance.choice((1, 1, 2, 20)))]
        lines.append("")
    lines.append(f"\nThis is found everywhere. It was {stage} as {seed}.\n")
    return "\n".join(lines)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    # Old enough for a crawl to trust the file's times.
    hour_ago = time.time() - 3600
    os.utime(path, (hour_ago, hour_ago))


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.md"))


def _some(files: list[Path], first: int, end: int) -> list[Path]:
    """Return a part of the files, in proportion to the folder."""
    return files[first * len(files) // FILES : end * len(files) // FILES]


def _unlike(files: list[Path]) -> list[Path]:
    """Return the files whose content is unique in the first version of the folder."""
    return [path for path in files if int(path.stem) % 10]


def _aside(folder: Path) -> Path:
    aside = folder.with_name(f"{folder.name} aside")
    aside.mkdir(exist_ok=True)
    return aside
