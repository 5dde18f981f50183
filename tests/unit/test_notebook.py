"""Notebooks."""

import json

import pytest

from kept.extract.notebook import MAX_OUTPUT_LENGTH, extract
from kept.extract.sections import Extraction, Unreadable

NOTEBOOK = {
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "cells": [
        {"cell_type": "markdown", "source": ["# Tides\n", "\n", "How high?\n"]},
        {
            "cell_type": "code",
            "source": "height(now)",
            "outputs": [
                {"output_type": "stream", "text": ["asking\n"]},
                {"output_type": "execute_result", "data": {"text/plain": "4.2", "image/png": "AAAA"}},
                {"output_type": "error", "ename": "Dry", "evalue": "no water"},
            ],
        },
        {"cell_type": "code", "source": [], "outputs": []},
        {"cell_type": "markdown", "source": "## Ports"},
    ],
}
EXPECTED = """# Tides

How high?

```python
height(now)
```

```
asking
```

```
4.2
```

```
Dry: no water
```

## Ports"""


def test_a_notebook_is_read_cell_by_cell() -> None:
    extraction = extract(json.dumps(NOTEBOOK).encode(), None)
    assert isinstance(extraction, Extraction)
    assert (extraction.title, extraction.markdown) == ("Tides", EXPECTED)
    assert [child.heading for child in extraction.tree.children[0].children] == ["Ports"]


def test_long_output_is_cut() -> None:
    cell = {"cell_type": "code", "source": "run()", "outputs": [{"text": "x" * 10_000}]}
    extraction = extract(json.dumps({"cells": [cell]}).encode(), None)
    assert isinstance(extraction, Extraction)
    assert len(extraction.markdown) < MAX_OUTPUT_LENGTH + 100


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"cells": 3}', b"[" * 100_000, b'{"a": 1}'])
def test_anything_but_a_notebook_is_unreadable(body: bytes) -> None:
    assert isinstance(extract(body, None), Unreadable)


@pytest.mark.parametrize(
    "cell", [3, {}, {"cell_type": 4, "source": 5}, {"cell_type": "code", "outputs": [1, {"data": 2}]}]
)
def test_an_invalid_cell_is_skipped(cell: object) -> None:
    assert isinstance(extract(json.dumps({"cells": [cell], "metadata": 1}).encode(), None), Extraction)
