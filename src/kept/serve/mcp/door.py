"""Where tools are offered: their hints, their answers, and errors as sentences."""

from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations

from kept.errors import KeptError
from kept.log import Log
from kept.model.key import KeyScope
from kept.model.nouns import dataclass
from kept.serve.mcp.envelope import clean, cleaned, shortened
from kept.serve.wording import worded
from kept.service.asking import Asker
from kept.service.house import House
from kept.service.wishing import Caller

log = Log(__name__)

LONGEST_SENTENCE = 1_500

READING = ToolAnnotations(read_only_hint=True, open_world_hint=False)
LOOKING_OUT = ToolAnnotations(read_only_hint=True, open_world_hint=True)
ADDING = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=True)
GIVING_UP = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


@dataclass(frozen=True, slots=True)
class Door:
    """Where tools are put, and what they stand on."""

    server: MCPServer[Any]
    house: House
    caller: Caller
    uploads: Path
    read_only: bool

    def asker(self, context: "Context[Any, Any]") -> Asker:
        """Who calls a tool: as the gate of the server found out; without one, whoever started the process."""
        request = context.request_context.request
        asker: Asker | None = getattr(getattr(request, "state", None), "asker", None)
        return asker or Asker(scope=KeyScope.ADMIN, caller=self.caller)

    def tool(self, title: str, hints: ToolAnnotations) -> Callable[[Callable[..., Awaitable[CallToolResult]]], None]:
        """Offers a function as a tool; one that writes only where writing is allowed."""

        def offer(verb: Callable[..., Awaitable[CallToolResult]]) -> None:
            if hints.read_only_hint or not self.read_only:
                self.server.add_tool(_telling(verb), title=title, annotations=hints)

        return offer


def answer(text: str, shape: dict[str, Any]) -> CallToolResult:
    """An answer to read and the same one to take apart. ``text`` is clean, or in an envelope."""
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=cleaned(shape))


def _telling(verb: Callable[..., Awaitable[CallToolResult]]) -> Callable[..., Awaitable[CallToolResult]]:
    """The tool, with what goes wrong told as a sentence."""

    @wraps(verb)
    async def told(*args: Any, **values: Any) -> CallToolResult:
        try:
            return await verb(*args, **values)
        except KeptError as error:
            return CallToolResult(content=[TextContent(type="text", text=sentence(error))], is_error=True)
        except Exception:  # the agent is told that it failed, and nothing else
            log.exception("tool failed", tool=verb.__name__)
            raise

    return told


_TOOLS = {
    "list": "list_sources",
    "search": "search_docs",
    "jobs": "list_jobs",
    "add": "add_source",
    "refresh": "refresh_source",
    "cancel": "cancel_job",
    "why": "why_missing",
}


def sentence(error: KeptError) -> str:
    """What an error says, in the words of the tools: what to do next is a tool, where there is one for it."""
    return shortened(" ".join(clean(worded(str(error), _TOOLS)).split()), LONGEST_SENTENCE)
