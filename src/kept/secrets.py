"""Secrets of sources. The database stores only references to them.

    env:NAME      the value of the environment variable NAME at the time of the crawl
    secret:NAME   an entry of the secrets file, which only its owner may read

A reference may follow a public prefix: ``Bearer env:TOKEN``, ``session=env:SID``.
"""

import json
import os
import re
import secrets as random_tokens
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kept.errors import InvalidInput, SecretUnavailable
from kept.model.source import SourceSettings, parse_secret_reference
from kept.private_files import make_private_folder

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class SecretStore:
    """The secrets file of this user, and the environment."""

    def __init__(self, file: Path, environment: Mapping[str, str]) -> None:
        self._file = file
        self._environment = environment

    def __repr__(self) -> str:
        return f"SecretStore({self._file})"

    def look_up(self, value: str) -> str:
        """Return a value with its reference resolved. Raises SecretUnavailable if the secret is not set."""
        if (reference := parse_secret_reference(value)) is None:
            return value
        prefix, kind, name = reference
        secret = (self._environment.get(name, "") if kind == "env" else self._read().get(name, "")).strip()
        if not secret:
            raise SecretUnavailable(
                f"The environment variable {name} is not set, and the site has to be told its value. "
                "Set it and run the same command again."
                if kind == "env"
                else f"The secret {name} is not in {self._file}. Set it again with 'kept set', on this machine."
            )
        if _CONTROL.search(secret):
            raise SecretUnavailable(f"The value of {kind}:{name} has line breaks or control characters in it.")
        return prefix + secret

    def seal(self, settings: SourceSettings, before: SourceSettings | None = None) -> SourceSettings:
        """Move secret values into the secrets file. Returns the settings with references in their place.

        ``before``: the settings they replace. Raises InvalidInput as ``check_references`` does.
        """
        check_references(settings, before)
        new_secrets: dict[str, str] = {}

        def seal_value(label: str, value: str) -> str:
            if not value or parse_secret_reference(value):
                return value
            name = f"{label.lower()}-{random_tokens.token_hex(6)}"
            new_secrets[name] = value
            return f"secret:{name}"

        sealed = _map_secret_values(settings, seal_value)
        if new_secrets:
            self._update_file(lambda secrets: secrets | new_secrets)
        return sealed

    def delete(self, settings: SourceSettings, keep: SourceSettings | None = None) -> None:
        """Delete from the file the secrets that these settings refer to and ``keep`` does not."""
        unused = _secret_names(settings) - (_secret_names(keep) if keep else set())
        if unused:
            self._update_file(lambda secrets: {name: value for name, value in secrets.items() if name not in unused})

    def _read(self) -> dict[str, str]:
        try:
            with self._file.open("rb") as file:
                if os.fstat(file.fileno()).st_mode & 0o077:
                    raise SecretUnavailable(
                        f"Others may read {self._file}, which holds secrets. Run: chmod 600 '{self._file}'"
                    )
                secrets: dict[str, str] = json.load(file)
                return secrets
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            what = error.strerror if isinstance(error, OSError) else "it is not JSON"
            raise SecretUnavailable(f"The secrets in {self._file} cannot be read: {what}.") from None

    def _update_file(self, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        """Replace the file atomically, under a lock, so that concurrent changes are not lost."""
        import fcntl

        make_private_folder(self._file.parent)
        with open(os.open(self._file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600), "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            content = json.dumps(change(self._read()), indent=2, sort_keys=True).encode()
            draft = self._file.with_suffix(f".{random_tokens.token_hex(4)}")
            try:
                with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(draft, self._file)
            except BaseException:
                with suppress(OSError):
                    draft.unlink()
                raise


def check_references(settings: SourceSettings, before: SourceSettings | None = None) -> None:
    """Raise InvalidInput if settings refer to stored secrets that those they replace do not: they belong to others."""
    if _secret_names(settings) - (_secret_names(before) if before else set()):
        raise InvalidInput("'secret:NAME' is how Kept itself refers to a secret. Say its value, or 'env:NAME'.")


def _map_secret_values(settings: SourceSettings, change: Callable[[str, str], str]) -> SourceSettings:
    access = settings.access
    headers = tuple(replace(header, value=change(header.name, header.value)) for header in access.headers)
    return replace(
        settings,
        access=replace(access, headers=headers, proxy=change("proxy", access.proxy)),
        webhook_secret=change("webhook", settings.webhook_secret),
        hook_secret=change("hook", settings.hook_secret),
    )


def _secret_names(settings: SourceSettings) -> set[str]:
    values = [
        *(header.value for header in settings.access.headers),
        *(settings.access.proxy, settings.webhook_secret, settings.hook_secret),
    ]
    references = [reference for value in values if (reference := parse_secret_reference(value))]
    return {name for _, kind, name in references if kind == "secret"}
