"""Secrets: what a site has to be told and nobody else may see. The database only knows where each is to be found.

    env:NAME      in the environment variable NAME, at the time of the crawl
    secret:NAME   in the secrets file, which only its owner may read

A reference may follow a word that is no secret: ``Bearer env:TOKEN``, ``session=env:SID``.
"""

import json
import os
import re
import secrets as chance
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kept.errors import InvalidInput, SecretUnavailable
from kept.model.source import SourceSettings, parse_secret_reference

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class SecretStore:
    """The secrets file of this user, and the environment."""

    def __init__(self, file: Path, environment: Mapping[str, str]) -> None:
        self._file = file
        self._environment = environment

    def __repr__(self) -> str:
        return f"Secrets({self._file})"

    def look_up(self, value: str) -> str:
        """What a header's or a proxy's value stands for; SecretUnavailable where it cannot be had."""
        if (reference := parse_secret_reference(value)) is None:
            return value
        before, kind, name = reference
        found = (self._environment.get(name, "") if kind == "env" else self._read().get(name, "")).strip()
        if not found:
            raise SecretUnavailable(
                f"The environment variable {name} is not set, and the site has to be told its value. "
                "Set it and run the same command again."
                if kind == "env"
                else f"The secret {name} is not in {self._file}. Set it again with 'kept set', on this machine."
            )
        if _CONTROL.search(found):
            raise SecretUnavailable(f"The value of {kind}:{name} has line breaks or control characters in it.")
        return before + found

    def seal(self, settings: SourceSettings, before: SourceSettings | None = None) -> SourceSettings:
        """The settings as they may be stored: each value that was said is in the file, and a reference in its place.

        ``before``: the settings they replace.
        """
        check_references(settings, before)
        fresh: dict[str, str] = {}

        def sealed(what: str, value: str) -> str:
            if not value or parse_secret_reference(value):
                return value
            name = f"{what.lower()}-{chance.token_hex(6)}"
            fresh[name] = value
            return f"secret:{name}"

        made = _map_secret_values(settings, sealed)
        if fresh:
            self._update_file(lambda held: held | fresh)
        return made

    def delete(self, settings: SourceSettings, keep: SourceSettings | None = None) -> None:
        """Deletes from the file what only these settings refer to."""
        gone = _secret_names(settings) - (_secret_names(keep) if keep else set())
        if gone:
            self._update_file(lambda held: {name: value for name, value in held.items() if name not in gone})

    def _read(self) -> dict[str, str]:
        try:
            with self._file.open("rb") as file:
                if os.fstat(file.fileno()).st_mode & 0o077:
                    raise SecretUnavailable(
                        f"Others may read {self._file}, which holds secrets. Run: chmod 600 '{self._file}'"
                    )
                held: dict[str, str] = json.load(file)
                return held
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            what = error.strerror if isinstance(error, OSError) else "it is no JSON"
            raise SecretUnavailable(f"The secrets in {self._file} cannot be read: {what}.") from None

    def _update_file(self, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        """Replaces the file as a whole; two who do it at once take turns."""
        import fcntl

        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(self._file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600), "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            content = json.dumps(change(self._read()), indent=2, sort_keys=True).encode()
            fresh = self._file.with_suffix(f".{chance.token_hex(4)}")
            try:
                with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(fresh, self._file)
            except BaseException:
                with suppress(OSError):
                    fresh.unlink()
                raise


def check_references(settings: SourceSettings, before: SourceSettings | None = None) -> None:
    """WrongCall where settings refer to secrets that those they replace did not have: what is there is others'."""
    if _secret_names(settings) - (_secret_names(before) if before else set()):
        raise InvalidInput("'secret:NAME' is how Kept itself refers to a secret. Say its value, or 'env:NAME'.")


def _map_secret_values(settings: SourceSettings, change: Callable[[str, str], str]) -> SourceSettings:
    access = settings.access
    headers = tuple(replace(header, value=change(header.name, header.value)) for header in access.headers)
    return replace(
        settings,
        access=replace(access, headers=headers, proxy=change("proxy", access.proxy)),
        hook_secret=change("hook", settings.hook_secret),
    )


def _secret_names(settings: SourceSettings) -> set[str]:
    values = [*(header.value for header in settings.access.headers), settings.access.proxy, settings.hook_secret]
    references = [reference for value in values if (reference := parse_secret_reference(value))]
    return {name for _, kind, name in references if kind == "secret"}
