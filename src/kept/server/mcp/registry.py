"""Registers tools: their annotations, their results, and errors as text."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations

from kept.errors import KeptError
from kept.log import Log
from kept.model.authority import Permissions
from kept.model.key import KeyScope
from kept.server.error_text import replace_cli_hints
from kept.server.mcp.untrusted import UNTRUSTED_NOTICE, clean_text, clean_values, truncate, wrap_untrusted
from kept.service.access import Principal
from kept.service.context import Services

log = Log(__name__)

MAX_ERROR_CHARACTERS = 1_500

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
READ_ONLY_OPEN_WORLD = ToolAnnotations(read_only_hint=True, open_world_hint=True)
ADDITIVE = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=True)
DESTRUCTIVE = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


@dataclass(frozen=True, slots=True)
class ToolRegistry:
    """The MCP server that tools are added to, and what they need to run."""

    server: MCPServer[Any]
    services: Services
    permissions: Permissions
    uploads_folder: Path
    read_only: bool

    def principal_for(self, context: "Context[Any, Any]") -> Principal:
        """Return the principal that the auth middleware found; over stdio, the user who started the process."""
        request = context.request_context.request
        principal: Principal | None = getattr(getattr(request, "state", None), "principal", None)
        return principal or Principal(scope=KeyScope.ADMIN, permissions=self.permissions)

    def tool(self, title: str, hints: ToolAnnotations) -> Callable[[Callable[..., Awaitable[CallToolResult]]], None]:
        """Register a function as a tool; on a read-only server, only if the tool only reads."""

        def register(function: Callable[..., Awaitable[CallToolResult]]) -> None:
            if hints.read_only_hint or not self.read_only:
                self.server.add_tool(_with_error_text(function), title=title, annotations=hints)

        return register


def tool_result(content: dict[str, Any], *, text: str = "", untrusted: str = "", hint: str = "") -> CallToolResult:
    """Return an answer as text and as structured content.

    ``text`` and ``hint`` are Kept's own words and those of the caller. What a site, a repository or another user may
    have written is ``untrusted``: it is wrapped, between the two; the structured content, which repeats it, says so.
    """
    parts = [clean_text(text), wrap_untrusted(untrusted) if untrusted else "", clean_text(hint)]
    notice = {"notice": UNTRUSTED_NOTICE} if untrusted else {}
    return CallToolResult(
        content=[TextContent(type="text", text="\n".join(filter(None, parts)))],
        structured_content=clean_values(content | notice),
    )


def _with_error_text(function: Callable[..., Awaitable[CallToolResult]]) -> Callable[..., Awaitable[CallToolResult]]:
    """Wrap a tool so that a KeptError becomes a result with its text."""

    @wraps(function)
    async def call(*args: Any, **values: Any) -> CallToolResult:
        try:
            return await function(*args, **values)
        except KeptError as error:
            return CallToolResult(content=[TextContent(type="text", text=error_text(error))], is_error=True)
        except Exception:  # the SDK tells the agent only that the tool failed
            log.exception("tool failed", tool=function.__name__)
            raise

    return call


_TOOL_FOR_COMMAND = {
    "list": "list_sources",
    "search": "search_docs",
    "jobs": "list_jobs",
    "add": "add_source",
    "refresh": "refresh_source",
    "cancel": "cancel_job",
    "why": "why_missing",
}


def error_text(error: KeptError) -> str:
    """Return the message of an error, with tools instead of commands where there is one.

    It is wrapped whole: any message may quote a site or a repository, in its middle and at any place of the code.
    """
    message = " ".join(clean_text(replace_cli_hints(str(error), _TOOL_FOR_COMMAND)).split())
    return wrap_untrusted(truncate(message, MAX_ERROR_CHARACTERS))
