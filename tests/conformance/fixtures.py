"""``kept serve`` with the tools, prompts and resources that the conformance suite calls.

    python -m tests.conformance.fixtures serve --port 0

Everything around them is Kept's own: middleware, lifespan, sessions, the MCP server with its tools.
"""

import base64
from typing import Any

from mcp.server.mcpserver import Audio, Context, Image, MCPServer, UserMessage
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    MissingRequiredClientCapabilityErrorData,
    SamplingCapability,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)

from kept.cli.main import main
from kept.server.mcp import server as mcp_server

MADE_FOR_IT = "Made for the conformance suite."

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WAV = b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0\x80>\0\0\2\0\x10\0data\0\0\0\0"
IMAGE = ImageContent(type="image", data=base64.b64encode(PNG).decode(), mime_type="image/png")


def with_fixtures(server: MCPServer[Any]) -> MCPServer[Any]:
    _add_content(server)
    _add_resources(server)
    _add_prompts(server)
    _add_questions(server)
    return server


def _embedded(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, text=text, mime_type=mime_type))


def _add_content(server: MCPServer[Any]) -> None:
    @server.tool(description=MADE_FOR_IT)
    def test_simple_text() -> str:
        return "This is a simple text response for testing."

    @server.tool(description=MADE_FOR_IT)
    def test_image_content() -> Image:
        return Image(data=PNG, format="png")

    @server.tool(description=MADE_FOR_IT)
    def test_audio_content() -> Audio:
        return Audio(data=WAV, format="wav")

    @server.tool(description=MADE_FOR_IT)
    def test_embedded_resource() -> EmbeddedResource:
        return _embedded("test://embedded-resource", "This is an embedded resource content.")

    @server.tool(description=MADE_FOR_IT)
    def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
        json = _embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
        return [TextContent(type="text", text="Multiple content types test:"), IMAGE, json]

    @server.tool(description=MADE_FOR_IT)
    def test_error_handling() -> str:
        raise ValueError("This tool intentionally returns an error for testing")

    @server.tool(description=MADE_FOR_IT)
    async def test_tool_with_progress(context: Context[Any, Any]) -> str:
        for done in (0, 50, 100):
            await context.report_progress(done, 100)
        return "done"

    @server.tool(description=MADE_FOR_IT)
    async def test_missing_capability(context: Context[Any, Any]) -> str:
        declared = context.client_capabilities
        if declared is None or declared.sampling is None:
            needed = ClientCapabilities(sampling=SamplingCapability())
            data = MissingRequiredClientCapabilityErrorData(required_capabilities=needed)
            raise MCPError(
                MISSING_REQUIRED_CLIENT_CAPABILITY,
                "sampling is needed",
                data.model_dump(by_alias=True, exclude_none=True),
            )
        return "sampling is there"


def _add_resources(server: MCPServer[Any]) -> None:
    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        return PNG

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> str:
        return f'{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}'


def _add_prompts(server: MCPServer[Any]) -> None:
    @server.prompt(description=MADE_FOR_IT)
    def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @server.prompt(description=MADE_FOR_IT)
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt(description=MADE_FOR_IT)
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:
        embedded = _embedded(resourceUri, "Embedded resource content for testing.")
        return [UserMessage(embedded), UserMessage("Please process the embedded resource above.")]

    @server.prompt(description=MADE_FOR_IT)
    def test_prompt_with_image() -> list[UserMessage]:
        return [UserMessage(IMAGE), UserMessage("Please analyze the image above.")]

    @server.prompt(description=MADE_FOR_IT)
    async def test_input_required_result_prompt(context: Context[Any, Any]) -> str | InputRequiredResult:
        return _asked(context, user_context=_form("What context should the prompt use?", "context")) or "Thank you."


# Tools with requests to the client -----------------------------------------------------------------------------------


def _form(message: str, name: str, kind: str = "string") -> ElicitRequest:
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sample(text: str, most: int) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=most))


def _asked(
    context: Context[Any, Any], state: str | None = None, **questions: InputRequest
) -> InputRequiredResult | None:
    """Return the questions while at least one of them is unanswered."""
    if questions.keys() <= (context.input_responses or {}).keys():
        return None
    return InputRequiredResult(input_requests=questions, request_state=state)


def _add_questions(server: MCPServer[Any]) -> None:
    name = _form("What is your name?", "name")

    @server.tool(description=MADE_FOR_IT)
    async def test_input_required_result_elicitation(context: Context[Any, Any]) -> str | InputRequiredResult:
        return _asked(context, user_name=name) or f"Hello, {context.input_responses}!"

    @server.tool(description=MADE_FOR_IT)
    async def test_input_required_result_sampling(context: Context[Any, Any]) -> str | InputRequiredResult:
        question = _sample("What is the capital of France?", 100)
        return _asked(context, capital_question=question) or f"{context.input_responses}"

    @server.tool(description=MADE_FOR_IT)
    async def test_input_required_result_list_roots(context: Context[Any, Any]) -> str | InputRequiredResult:
        return _asked(context, client_roots=ListRootsRequest()) or f"{context.input_responses}"

    @server.tool(description=MADE_FOR_IT)
    async def test_input_required_result_request_state(context: Context[Any, Any]) -> str | InputRequiredResult:
        question = _form("Please confirm", "ok", "boolean")
        return _asked(context, "confirming", confirm=question) or (
            "state-ok" if context.request_state == "confirming" else "another state"
        )

    @server.tool(description=MADE_FOR_IT)
    async def test_input_required_result_tampered_state(context: Context[Any, Any]) -> str | InputRequiredResult:
        return _asked(context, "sealed", confirm=_form("Please confirm", "ok", "boolean")) or "done"

    @server.tool(description=MADE_FOR_IT)
    async def test_input_required_result_multiple_inputs(context: Context[Any, Any]) -> str | InputRequiredResult:
        greeting = _sample("Generate a greeting", 50)
        return _asked(context, "three", user_name=name, greeting=greeting, client_roots=ListRootsRequest()) or "done"

    @server.tool(description=MADE_FOR_IT)
    async def test_input_required_result_multi_round(context: Context[Any, Any]) -> str | InputRequiredResult:
        if context.request_state != "second":
            first = _asked(context, "first", step1=_form("Step 1: What is your name?", "name"))
            if first:
                return first
        return _asked(context, "second", step2=_form("Step 2: What is your favorite color?", "color")) or "done"

    @server.tool(description=MADE_FOR_IT)
    async def test_input_required_result_capabilities(context: Context[Any, Any]) -> str | InputRequiredResult:
        declared = context.client_capabilities or ClientCapabilities()
        questions: dict[str, InputRequest] = {}
        if declared.elicitation is not None:
            questions["user_name"] = name
        if declared.sampling is not None:
            questions["greeting"] = _sample("Generate a greeting", 50)
        return (_asked(context, **questions) if questions else None) or "done"


if __name__ == "__main__":
    plain = mcp_server.make_mcp_server
    mcp_server.make_mcp_server = lambda *args, **options: with_fixtures(plain(*args, **options))
    main()
