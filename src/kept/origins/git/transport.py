"""The way to a remote: who may be asked, as whom, and through what.

Secrets go into git's environment and nowhere else.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from kept.errors import SourceUnavailable
from kept.model.repository import remote_host_and_port
from kept.model.source import SourceSettings
from kept.origins.git.program import Git, make_git_environment
from kept.origins.subprocesses import ProgramFailed, run_program
from kept.origins.web.client_factory import default_user_agent, make_http_client, parse_host_port
from kept.origins.web.gate_proxy import GateProxy
from kept.origins.web.http.address_policy import AddressForbidden
from kept.origins.web.http.client import HttpClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """``async with way.to(remote) as git``: git, told how to get there."""

    settings: SourceSettings
    environment: Mapping[str, str] = field(repr=False)
    look_up: Callable[[str], str]

    @asynccontextmanager
    async def connect(self, remote: str) -> AsyncIterator[Git]:
        """Raises SourceUnavailable where the gate does not let us."""
        scheme = remote.partition("://")[0] if "://" in remote else "ssh"
        told = [("remote.origin.url", remote)]
        if scheme == "file":
            yield self._make_git(told, scheme)
            return
        egress = make_http_client(f"{remote}/", self.settings, look_up=self.look_up)
        try:
            addresses = await _allowed_addresses(egress, remote)
            if scheme in ("http", "https"):
                async with GateProxy(egress) as proxy:
                    yield replace(
                        self._make_git([*told, *self._http_config(remote, proxy)], scheme), redact=egress.redact
                    )
            elif scheme == "git":
                if not addresses:  # git would look it up again, and nobody would check what it finds then
                    raise SourceUnavailable(f"{remote} cannot be reached: its host name cannot be resolved.")
                host, port = parse_host_port(remote_host_and_port(remote))
                address = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
                beginning = remote[: remote.index("/", len("git://")) + 1]
                pinned = [(f"url.git://{address}:{port}/.insteadOf", beginning)]
                yield self._make_git([*told, *pinned], scheme, GIT_OVERRIDE_VIRTUAL_HOST=f"{host}:{port}")
            else:
                yield self._make_git(told, scheme, ssh=await self._ssh_command())
        finally:
            await egress.close()

    def _make_git(self, config: list[tuple[str, str]], scheme: str, ssh: str = "ssh", **variables: str) -> Git:
        return Git(environment=make_git_environment(self.environment, config, protocol=scheme, ssh=ssh) | variables)

    def _http_config(self, remote: str, proxy: GateProxy) -> list[tuple[str, str]]:
        """Through the gate, and with the headers of the source for this site only."""
        access, to = self.settings.access, urlsplit(remote)
        gate = proxy.url.replace("://", f"://{proxy.username}:{proxy.password}@")
        told = [
            ("remote.origin.proxy", gate),
            ("http.proxy", gate),  # for what a server names besides, where the user lets it
            ("http.userAgent", access.user_agent or f"git/2 {default_user_agent()}"),
        ]
        site = f"http.{to.scheme}://{to.netloc}/.extraHeader"
        told += [(site, f"{header.name}: {self.look_up(header.value)}") for header in access.headers]
        return told + ([("http.sslCAInfo", access.ca_file)] if access.ca_file else [])

    async def _ssh_command(self) -> str:
        """The ssh that the user has told git to use."""
        arguments = ("git", "config", "--get", "core.sshCommand")
        with suppress(ProgramFailed):
            found = await run_program(*arguments, environment=self.environment, cwd=Path("/"), seconds=10)
            return found.decode().strip() or "ssh"
        return "ssh"


async def _allowed_addresses(client: HttpClient, remote: str) -> list[str]:
    """Where the host of a remote is, if it may be asked. None are known of names that only ssh or a proxy resolves."""
    try:
        with suppress(OSError):
            return list(await client.address_policy.resolve_allowed(*parse_host_port(remote_host_and_port(remote))))
    except AddressForbidden as error:
        raise SourceUnavailable(
            f"{remote} cannot be asked: {error}. "
            "An address that is not public has to be allowed by the owner of the source."
        ) from None
    return []
