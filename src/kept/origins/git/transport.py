"""Configures git to reach a remote: allowed addresses, credentials and proxy.

Secrets go into git's environment and nowhere else.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from kept.errors import SourceUnavailable
from kept.model.authority import OWNER_PERMISSIONS, Permissions, remote_transport, why_root_refused
from kept.model.repository import remote_host_and_port
from kept.model.source import SourceKind, SourceSettings
from kept.origins.git.program import Git, make_git_environment
from kept.origins.subprocesses import ProgramFailed, run_program
from kept.origins.web.client_factory import default_user_agent, make_http_client, parse_host_port
from kept.origins.web.gate_proxy import GateProxy
from kept.origins.web.http.address_policy import AddressForbidden
from kept.origins.web.http.client import HttpClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """``async with transport.connect(remote) as git`` yields a git that can reach the remote."""

    settings: SourceSettings
    environment: Mapping[str, str] = field(repr=False)
    look_up: Callable[[str], str]
    permissions: Permissions = OWNER_PERMISSIONS

    @asynccontextmanager
    async def connect(self, remote: str) -> AsyncIterator[Git]:
        """Yield a configured git. Raises SourceUnavailable where the remote's address is not allowed."""
        if refusal := why_root_refused(self.permissions, SourceKind.GIT, remote):
            raise SourceUnavailable(refusal)
        scheme = remote_transport(remote)
        config = [("remote.origin.url", remote)]
        if scheme == "file":
            yield self._make_git(config, scheme)
            return
        client = make_http_client(f"{remote}/", self.settings, look_up=self.look_up)
        try:
            addresses = await _allowed_addresses(client, remote)
            if scheme in ("http", "https"):
                async with GateProxy(client) as proxy:
                    git = self._make_git([*config, *self._http_config(remote, proxy)], scheme)
                    yield replace(git, redact=client.redact)
            elif scheme == "git":
                if not addresses:  # git would resolve the name itself, unchecked
                    raise SourceUnavailable(f"{remote} cannot be reached: its host name cannot be resolved.")
                host, port = parse_host_port(remote_host_and_port(remote))
                address = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
                server_url = remote[: remote.index("/", len("git://")) + 1]
                pinned = [(f"url.git://{address}:{port}/.insteadOf", server_url)]
                yield self._make_git([*config, *pinned], scheme, GIT_OVERRIDE_VIRTUAL_HOST=f"{host}:{port}")
            else:
                yield self._make_git(config, scheme, ssh=await self._ssh_command())
        finally:
            await client.close()

    def _make_git(self, config: list[tuple[str, str]], scheme: str, ssh: str = "ssh", **variables: str) -> Git:
        environment = make_git_environment(
            self.environment,
            config,
            protocol=scheme,
            ssh=ssh,
            uses_user_tools=self.permissions.user_tools,
        )
        return Git(environment=environment | variables)

    def _http_config(self, remote: str, proxy: GateProxy) -> list[tuple[str, str]]:
        """Return the configuration for HTTP: through the gate proxy, with the source's headers for this site only."""
        access, url = self.settings.access, urlsplit(remote)
        proxy_url = proxy.url.replace("://", f"://{proxy.username}:{proxy.password}@")
        config = [
            ("remote.origin.proxy", proxy_url),
            ("http.proxy", proxy_url),  # for other URLs that a server names, where the user's configuration allows it
            ("http.userAgent", access.user_agent or f"git/2 {default_user_agent()}"),
        ]
        header_key = f"http.{url.scheme}://{url.netloc}/.extraHeader"
        config += [(header_key, f"{header.name}: {self.look_up(header.value)}") for header in access.headers]
        return config + ([("http.sslCAInfo", access.ca_file)] if access.ca_file else [])

    async def _ssh_command(self) -> str:
        """Return the ssh command of the user's git configuration."""
        arguments = ("git", "config", "--get", "core.sshCommand")
        with suppress(ProgramFailed):
            found = await run_program(*arguments, environment=self.environment, cwd=Path("/"), seconds=10)
            return found.decode().strip() or "ssh"
        return "ssh"


async def _allowed_addresses(client: HttpClient, remote: str) -> list[str]:
    """Return the remote host's addresses; none where only ssh or a proxy can resolve it. Raises SourceUnavailable."""
    try:
        with suppress(OSError):
            return list(await client.address_policy.resolve_allowed(*parse_host_port(remote_host_and_port(remote))))
    except AddressForbidden as error:
        raise SourceUnavailable(
            f"{remote} cannot be fetched: {error}. "
            "An address that is not public has to be allowed by the owner of the source."
        ) from None
    return []
