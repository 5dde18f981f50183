"""Secrets: where they are stored, and where they never appear."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kept.errors import InvalidInput, SecretUnavailable
from kept.model.source import Access, Header, SourceSettings, parse_secret_reference
from kept.secrets import SecretStore

TOKEN = "tok-4f1d7c60a2b94e1f"


def settings(*headers: tuple[str, str], proxy: str = "") -> SourceSettings:
    return SourceSettings(
        access=Access(headers=tuple(Header(name=name, value=value) for name, value in headers), proxy=proxy)
    )


@pytest.fixture
def secrets(tmp_path: Path) -> SecretStore:
    return SecretStore(
        tmp_path / "data" / "secrets.json",
        {"TOKEN": f"{TOKEN}\n", "EMPTY": "", "BLANK": " \n", "BROKEN": "a\r\nHost: b"},
    )


def held(secrets: SecretStore) -> dict[str, str]:
    return json.loads(secrets._file.read_text()) if secrets._file.exists() else {}


def test_a_value_that_is_said_goes_into_the_file_and_a_reference_into_the_settings(secrets: SecretStore) -> None:
    plain = settings(
        ("Authorization", f"Bearer {TOKEN}"), ("Cookie", "sid=env:TOKEN"), proxy="http://me:pw@proxy.test:3128"
    )
    sealed = secrets.seal(plain)
    stored = json.dumps(sealed.as_json())
    assert TOKEN not in stored
    assert "pw@proxy" not in stored
    assert [secrets.look_up(header.value) for header in sealed.access.headers] == [f"Bearer {TOKEN}", f"sid={TOKEN}"]
    assert secrets.look_up(sealed.access.proxy) == "http://me:pw@proxy.test:3128"
    assert sorted(held(secrets).values()) == [f"Bearer {TOKEN}", "http://me:pw@proxy.test:3128"]
    assert secrets._file.stat().st_mode & 0o777 == 0o600
    assert secrets.seal(sealed, before=sealed) == sealed, "what is a reference already stays"
    assert TOKEN not in repr(plain) + repr(sealed) + repr(secrets)


def test_nobody_refers_to_the_secrets_of_others(secrets: SecretStore) -> None:
    theirs = secrets.seal(settings(("A", TOKEN)))
    with pytest.raises(InvalidInput, match="is how Kept itself refers to a secret"):
        secrets.seal(theirs)
    with pytest.raises(InvalidInput, match="is how Kept itself refers to a secret"):
        secrets.seal(theirs, before=secrets.seal(settings(("A", "mine"))))


def test_a_reference_needs_no_file(secrets: SecretStore) -> None:
    assert (
        secrets.seal(settings(("A", "env:TOKEN"), ("B", "Bearer env:TOKEN"))).access.headers[1].value
        == "Bearer env:TOKEN"
    )
    assert not secrets._file.exists()
    secrets.delete(settings(("A", "env:TOKEN")))
    assert not secrets._file.parent.exists()


def test_what_is_no_longer_referred_to_is_forgotten(secrets: SecretStore) -> None:
    one, two = secrets.seal(settings(("A", "aaaa"), ("B", "bbbb"))), secrets.seal(settings(("C", "cccc")))
    kept = settings(("B", one.access.headers[1].value))
    secrets.delete(one, keep=kept)
    assert sorted(held(secrets).values()) == ["bbbb", "cccc"]
    secrets.delete(two)
    secrets.delete(kept)
    assert held(secrets) == {}


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("env:NOWHERE", "The environment variable NOWHERE is not set"),
        ("Bearer env:EMPTY", "The environment variable EMPTY is not set"),
        ("Bearer env:BLANK", "The environment variable BLANK is not set"),
        ("env:BROKEN", "env:BROKEN has line breaks"),
        ("secret:gone-1", "The secret gone-1 is not in "),
    ],
)
def test_a_value_that_cannot_be_had_is_named(secrets: SecretStore, value: str, sentence: str) -> None:
    with pytest.raises(SecretUnavailable, match=sentence):
        secrets.look_up(value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_may_read_is_not_used(secrets: SecretStore, mode: int) -> None:
    sealed = secrets.seal(settings(("A", TOKEN)))
    os.chmod(secrets._file, mode)
    with pytest.raises(SecretUnavailable, match="Run: chmod 600 ") as refused:
        secrets.look_up(sealed.access.headers[0].value)
    assert TOKEN not in str(refused.value)
    with pytest.raises(SecretUnavailable, match="Run: chmod 600 "):
        secrets.seal(settings(("B", "bbbb")))


def test_those_who_write_at_once_lose_nothing(secrets: SecretStore) -> None:
    with ThreadPoolExecutor(8) as many:
        list(many.map(lambda number: secrets.seal(settings(("A", f"value-{number}"))), range(40)))
    assert sorted(held(secrets).values()) == sorted(f"value-{number}" for number in range(40))
    assert {path.name for path in secrets._file.parent.iterdir()} == {"secrets.json", "secrets.lock"}


@pytest.mark.parametrize(
    "value",
    ["Bearer tok", "environment:x", "a b env:X", "sid=1; other=env:X", "env:", "env:a b", "https://env:x@host/"],
)
def test_what_only_looks_like_a_reference_is_a_value(value: str) -> None:
    assert parse_secret_reference(value) is None
