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


def test_a_notebook_reads_as_its_cells_one_after_the_other() -> None:
    found = extract(json.dumps(NOTEBOOK).encode(), None)
    assert isinstance(found, Extraction)
    assert (found.title, found.markdown) == ("Tides", EXPECTED)
    assert [child.heading for child in found.tree.children[0].children] == ["Ports"]


def test_a_log_is_cut_short() -> None:
    cell = {"cell_type": "code", "source": "run()", "outputs": [{"text": "x" * 10_000}]}
    found = extract(json.dumps({"cells": [cell]}).encode(), None)
    assert isinstance(found, Extraction)
    assert len(found.markdown) < MAX_OUTPUT_LENGTH + 100


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"cells": 3}', b"[" * 100_000, b'{"a": 1}'])
def test_what_is_no_notebook_is_not_read(body: bytes) -> None:
    assert isinstance(extract(body, None), Unreadable)


@pytest.mark.parametrize(
    "cell", [3, {}, {"cell_type": 4, "source": 5}, {"cell_type": "code", "outputs": [1, {"data": 2}]}]
)
def test_a_broken_cell_is_passed_over(cell: object) -> None:
    assert isinstance(extract(json.dumps({"cells": [cell], "metadata": 1}).encode(), None), Extraction)
