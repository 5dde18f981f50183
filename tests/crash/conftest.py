"""What the crash tests share."""

import os
import random
from collections.abc import Iterator

import pytest

from tests.crash.crawler import Crawlers


@pytest.fixture(scope="session")
def crawlers() -> Iterator[Crawlers]:
    with Crawlers() as forking:
        yield forking


@pytest.fixture
def chance() -> random.Random:
    """Goes another way each time; the seed in the header of the run leads the same way again."""
    return random.Random(os.environ["KEPT_TEST_SEED"])
