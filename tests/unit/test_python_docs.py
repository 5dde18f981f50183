"""Docstrings of Python modules."""

import time
from pathlib import Path
from zipfile import ZipFile

import pytest

from kept.extract.python_docs import extract
from kept.extract.reader import guess_content_type
from kept.extract.sections import Extraction, Unreadable
from kept.model.package import Package
from kept.model.source import Scope, SourceSettings
from kept.origins.packages.origin import PackageOrigin

MODULE = '''"""
tides.api
~~~~~~~~~

About ``tides``.
"""
import sys

class Port(Base):
    """A port, see :class:`~tides.Sea`."""

    def __init__(self, name: str, *, depth=4.2):
        """Open it."""

    def height(self, at: int = 0) -> float:
        """Return the height.

        :param at: when, in
            hours
        :rtype: float

        >>> Port("Ostend").height()
        4.2

        Example::

            port.height(
                3)
        """

    @property
    def sea(self):
        """The sea."""

    def _hidden(self):
        """No."""

    def undocumented(self): ...

if sys.platform:
    def open_port(*names, **options):
        """Open ports.

        Parameters
        ----------
        names
        """

def _private():
    """No."""
'''
MARKDOWN = """About `tides`.

## `class Port(name: str, *, depth=4.2)`

A port, see `tides.Sea`.

Open it.

### `Port.height(at: int=0) -> float`

Return the height.

- *at*: when, in
    hours
- *Rtype*: float

```python
>>> Port("Ostend").height()
4.2
```

Example:

```
port.height(
    3)
```

### `Port.sea`

The sea.

## `open_port(*names, **options)`

Open ports.

**Parameters**

names"""


def test_a_module_is_read_as_its_docstrings() -> None:
    answer = extract(MODULE.encode(), None, "pypi:/tides@1.0/tides/api.py")
    assert isinstance(answer, Extraction)
    assert (answer.title, answer.markdown) == ("tides.api", MARKDOWN)
    port, open_port = answer.tree.children
    assert [node.anchor for node in (port, *port.children, open_port)] == [
        "tides.api.Port", "tides.api.Port.height", "tides.api.Port.sea", "tides.api.open_port",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "module", [b"x = 1", b"print 1", b"(" * 10_000, b"x" * 3_000_000, b"\0", b"a = " + b"-" * 100_000 + b"1"]
)
def test_other_modules_are_refused_in_bounded_time(module: bytes) -> None:
    start = time.process_time()
    assert isinstance(extract(module, None), Unreadable)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("others", "include", "exclude", "kept"),
    [
        ((), (), (), ["README.md", "tides/__init__.py", "tides/api.py"]),
        ((), (), ("*.py",), ["README.md"]),
        (("docs/guide.md",), (), (), ["README.md", "docs/guide.md"]),
        (("docs/guide.md",), ("*.py",), (), ["tides/__init__.py", "tides/api.py"]),
    ],
)
def test_modules_are_kept_where_a_package_has_no_other_documentation(
    tmp_path: Path, others: tuple[str, ...], include: tuple[str, ...], exclude: tuple[str, ...], kept: list[str]
) -> None:
    modules = ("tides/__init__.py", "tides/api.py", "tides/_impl.py", "tides/tests/test_a.py", "docs/conf.py")
    with ZipFile(tmp_path / "a.whl", "w") as wheel:
        for name in ("README.md", *modules, *others):
            wheel.writestr(name, "x")
    settings = SourceSettings(scope=Scope(include=include, exclude=exclude))
    origin = PackageOrigin(Package(registry="pypi", name="tides"), settings, type_of=guess_content_type, environment={})
    (tmp_path / "out").mkdir()
    origin._load_files(tmp_path / "a.whl", tmp_path / "out")
    assert [url.removeprefix("pypi:/tides/") for url in origin._files] == kept
