"""Where tools are offered: their hints, their answers, and errors as sentences."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations

from kept.errors import KeptError
from kept.log import Log
from kept.model.key import KeyScope
from kept.server.error_text import replace_cli_hints
from kept.server.mcp.untrusted import clean_text, clean_values, truncate
from kept.service.access import Permissions, Principal
from kept.service.context import Services

log = Log(__name__)

MAX_ERROR_CHARACTERS = 1_500

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
READ_ONLY_OPEN_WORLD = ToolAnnotations(read_only_hint=True, open_world_hint=True)
ADDITIVE = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=True)
DESTRUCTIVE = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


@dataclass(frozen=True, slots=True)
class ToolRegistry:
    """Where tools are put, and what they stand on."""

    server: MCPServer[Any]
    services: Services
    permissions: Permissions
    uploads_folder: Path
    read_only: bool

    def principal_for(self, context: "Context[Any, Any]") -> Principal:
        """Who calls a tool: as the gate of the server found out; without one, whoever started the process."""
        request = context.request_context.request
        asker: Principal | None = getattr(getattr(request, "state", None), "asker", None)
        return asker or Principal(scope=KeyScope.ADMIN, permissions=self.permissions)

    def tool(self, title: str, hints: ToolAnnotations) -> Callable[[Callable[..., Awaitable[CallToolResult]]], None]:
        """Offers a function as a tool; one that writes only where writing is allowed."""

        def offer(verb: Callable[..., Awaitable[CallToolResult]]) -> None:
            if hints.read_only_hint or not self.read_only:
                self.server.add_tool(_with_error_text(verb), title=title, annotations=hints)

        return offer


def tool_result(text: str, shape: dict[str, Any]) -> CallToolResult:
    """An answer to read and the same one to take apart. ``text`` is clean, or in an envelope."""
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=clean_values(shape))


def _with_error_text(verb: Callable[..., Awaitable[CallToolResult]]) -> Callable[..., Awaitable[CallToolResult]]:
    """The tool, with what goes wrong told as a sentence."""

    @wraps(verb)
    async def told(*args: Any, **values: Any) -> CallToolResult:
        try:
            return await verb(*args, **values)
        except KeptError as error:
            return CallToolResult(content=[TextContent(type="text", text=error_text(error))], is_error=True)
        except Exception:  # the agent is told that it failed, and nothing else
            log.exception("tool failed", tool=verb.__name__)
            raise

    return told


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
    """What an error says, in the words of the tools: what to do next is a tool, where there is one for it."""
    return truncate(
        " ".join(clean_text(replace_cli_hints(str(error), _TOOL_FOR_COMMAND)).split()), MAX_ERROR_CHARACTERS
    )
