"""The ``git`` of this machine, told what to do by arguments, and how by its environment.

Its configuration is the user's (helpers, certificates, ssh), with what is said here on top. What is said here is in no
command line: other users of the machine could read it there.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from kept.origins.subprocesses import ProgramFailed, run_program

QUERY_SECONDS = 120.0  # seconds, for what asks little
FETCH_SECONDS = 3600.0  # for what fetches

# Of the many variables by which a shell may steer git, those that belong to the user rather than to a repository.
_USER_VARIABLES = frozenset({
    "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY",
})  # fmt: skip
_REMOVED_VARIABLES = re.compile(r"(?:https?|all|no|ftp)_proxy|SSH_ASKPASS(?:_REQUIRE)?|GIT_.*", re.IGNORECASE)

_FIXED_CONFIG = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("credential.interactive", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.showForcedUpdates", "false"),
    ("gc.autoDetach", "false"),  # nothing goes on behind our back
    ("maintenance.autoDetach", "false"),
    ("http.followRedirects", "false"),
    ("http.lowSpeedLimit", "100"),
    ("http.lowSpeedTime", "60"),
    ("http.proxyAuthMethod", "basic"),
    ("protocol.version", "2"),
    ("submodule.recurse", "false"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    environment: Mapping[str, str] = field(repr=False)
    redact: Callable[[str], str] = field(default=str, repr=False)  # a server may say what it was asked with

    async def __call__(
        self,
        *arguments: str,
        folder: Path,
        seconds: float = QUERY_SECONDS,
        stdin_data: bytes = b"",
        index_file: Path | None = None,
    ) -> bytes:
        """What git answers in a repository, or where there is none. Raises ProgramFailed. ``index``: to use as one."""
        environment = self.environment_in(folder) | ({"GIT_INDEX_FILE": str(index_file)} if index_file else {})
        folder = folder if folder.is_dir() else folder.parent
        try:
            return await run_program(
                "git", *arguments, environment=environment, cwd=folder, seconds=seconds, stdin_data=stdin_data
            )
        except ProgramFailed as failed:
            raise ProgramFailed(self.redact(failed.message), failed.exit_code) from None

    def environment_in(self, folder: Path) -> dict[str, str]:
        """What git is started with in this repository. It looks for no other: a folder above may be one."""
        return {**self.environment, "GIT_DIR": str(folder)}


def make_git_environment(
    user_environment: Mapping[str, str], config: Sequence[tuple[str, str]], *, protocol: str, ssh: str = "ssh"
) -> dict[str, str]:
    """What git is started with: the user's environment, nobody to ask, and ``config`` over the user's own.

    Only ``protocol`` may be spoken, and ssh, which the user may have put in its place.
    """
    environment = {
        name: value
        for name, value in user_environment.items()
        if name in _USER_VARIABLES or not _REMOVED_VARIABLES.fullmatch(name)
    }
    told, program = (
        [*_FIXED_CONFIG, *config],
        quote(user_environment["GIT_SSH"]) if user_environment.get("GIT_SSH") else "",
    )
    for number, (key, value) in enumerate(told):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    ssh_command = user_environment.get("GIT_SSH_COMMAND") or program or ssh
    return environment | {
        "GIT_CONFIG_COUNT": str(len(told)),
        "GIT_ALLOW_PROTOCOL": f"{protocol}:ssh",
        "GIT_ASKPASS": "",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_SSH_COMMAND": f"{ssh_command} -oBatchMode=yes -oConnectTimeout=20",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }
