"""Fixtures of the crash tests."""

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
    """Return a random generator that differs in each run; KEPT_TEST_SEED repeats one."""
    return random.Random(os.environ["KEPT_TEST_SEED"])
