"""Runs the ``git`` of this machine, configured through its environment.

The user's configuration (helpers, certificates, ssh) applies, overridden by ours. Ours may hold secrets, so it is never
on a command line, which other users of the machine can read.
"""

import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from kept.origins.subprocesses import ProgramFailed, make_neutral_environment, run_program, stream_program

QUERY_SECONDS = 120.0
FETCH_SECONDS = 3600.0

# The variables of git that belong to the user rather than to a repository; the others are removed.
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
    ("gc.autoDetach", "false"),  # no process may outlive the command
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
    redact: Callable[[str], str] = field(default=str, repr=False)  # a server may repeat the credentials it was sent

    async def __call__(
        self,
        *arguments: str,
        folder: Path,
        seconds: float = QUERY_SECONDS,
        stdin_data: bytes = b"",
        index_file: Path | None = None,
    ) -> bytes:
        """Run git in a repository folder, which need not exist, and return its output. Raises ProgramFailed."""
        environment = self.environment_in(folder) | ({"GIT_INDEX_FILE": str(index_file)} if index_file else {})
        folder = folder if folder.is_dir() else folder.parent
        try:
            return await run_program(
                "git", *arguments, environment=environment, cwd=folder, seconds=seconds, stdin_data=stdin_data
            )
        except ProgramFailed as failed:
            raise ProgramFailed(self.redact(failed.message), failed.exit_code) from None

    async def stream(
        self, *arguments: str, folder: Path, seconds: float = QUERY_SECONDS
    ) -> AsyncGenerator[bytes, None]:
        """Run git in a repository folder and yield its output as it comes. Raises ProgramFailed."""
        output = stream_program(
            "git", *arguments, environment=self.environment_in(folder), cwd=folder, seconds=QUERY_SECONDS
        )
        try:
            async with aclosing(output):
                async for data in output:
                    yield data
        except ProgramFailed as failed:
            raise ProgramFailed(self.redact(failed.message), failed.exit_code) from None

    def environment_in(self, folder: Path) -> dict[str, str]:
        """Return git's environment for this repository. Git searches no folder above, which may be another one."""
        return {**self.environment, "GIT_DIR": str(folder)}


def make_git_environment(
    user_environment: Mapping[str, str],
    config: Sequence[tuple[str, str]],
    *,
    protocol: str,
    ssh: str = "ssh",
    uses_user_tools: bool = True,
) -> dict[str, str]:
    """Return the environment for git: the user's, without prompts, with ``config`` over the user's configuration.

    Only ``protocol`` is allowed, and ssh, which the user's configuration may substitute for it. Without
    ``uses_user_tools`` there is no configuration of the user (helpers, rewritten URLs, netrc), and no ssh.
    """
    if not uses_user_tools:
        return _make_neutral_git_environment(user_environment, config, protocol)
    environment = {
        name: value
        for name, value in user_environment.items()
        if name in _USER_VARIABLES or not _REMOVED_VARIABLES.fullmatch(name)
    }
    environment |= _config_variables([*_FIXED_CONFIG, *config])
    ssh_program = quote(user_environment["GIT_SSH"]) if user_environment.get("GIT_SSH") else ssh
    ssh_command = user_environment.get("GIT_SSH_COMMAND") or ssh_program
    return environment | {
        **_QUIET,
        "GIT_ALLOW_PROTOCOL": f"{protocol}:ssh",
        "GIT_SSH_COMMAND": f"{ssh_command} -oBatchMode=yes -oConnectTimeout=20",
    }


_QUIET = {"GIT_ASKPASS": "", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


def _make_neutral_git_environment(
    user_environment: Mapping[str, str], config: Sequence[tuple[str, str]], protocol: str
) -> dict[str, str]:
    no_config = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    # A server that asks for Negotiate would be told the user's Kerberos ticket: "emptyAuth" is on for it by itself.
    no_login = [("credential.helper", ""), ("http.emptyAuth", "false")]
    return {
        **make_neutral_environment(user_environment),
        **_config_variables([*_FIXED_CONFIG, *no_login, *config]),
        **_QUIET,
        **no_config,
        "GIT_ALLOW_PROTOCOL": protocol,
        "GIT_SSH_COMMAND": "false",
    }


def _config_variables(config: Sequence[tuple[str, str]]) -> dict[str, str]:
    variables = {"GIT_CONFIG_COUNT": str(len(config))}
    for number, (key, value) in enumerate(config):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables
