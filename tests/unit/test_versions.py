"""Selection of a version label."""

import pytest

from kept.search.versions import best_match

REACT = ["17.0.2", "18.2.0", "18.10.1", "18.3.0-rc.1", "19.0.0-beta", "v16.14", ""]


@pytest.mark.parametrize(
    ("target", "labels", "expected"),
    [
        ("18", REACT, "18.10.1"),
        ("^18", REACT, "18.10.1"),
        ("^18.2", REACT, "18.10.1"),
        ("~18.2", REACT, "18.2.0"),
        ("18.2", REACT, "18.2.0"),
        ("latest", REACT, "18.10.1"),
        ("19", REACT, "19.0.0-beta"),
        ("16", REACT, "v16.14"),
        ("17.0.2", REACT, "17.0.2"),
        ("^17.1", REACT, None),
        ("20", REACT, None),
        ("main", REACT, None),
        ("main", [*REACT, "main"], "main"),
        ("5.2.1", ["5.2", "5.1", "4.2"], "5.2"),
        ("^0.4", ["0.4.9", "0.5.0", "0.4.10"], "0.4.10"),
        ("latest", ["1.0-rc1"], "1.0-rc1"),
        ("latest", [""], ""),
        ("latest", [], None),
        ("", ["1", "2"], "2"),
    ],
)
def test_the_newest_version_that_people_would_expect_answers(
    target: str, labels: list[str], expected: str | None
) -> None:
    assert best_match(target, labels) == expected
