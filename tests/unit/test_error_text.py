"""Error messages for clients without commands and options."""

from kept.errors import InvalidInput, NotFound
from kept.server.error_text import replace_cli_hints, strip_cli_hints
from kept.server.mcp.registry import error_text
from kept.server.problems import error_response

NO_SOURCE = "There is no source named 'djano'. 'kept list' shows what there is."
TAKEN = "There is already a source named '--name'. Choose another name with --name, or --max-pages."


def test_each_interface_has_its_own_hints_in_an_error() -> None:
    assert b"GET /api/v1/sources shows what there is." in error_response(NotFound(NO_SOURCE)).body
    assert "\nThere is no source named 'djano'. list_sources shows what there is.\n" in error_text(NotFound(NO_SOURCE))
    assert strip_cli_hints(NO_SOURCE) == "There is no source named 'djano'."
    named = "There is already a source named '--name'. Choose another name with name, or max_pages."
    assert replace_cli_hints(TAKEN, {}) == strip_cli_hints(TAKEN) == named
    assert f"\n{named}\n" in error_text(InvalidInput(TAKEN))
    assert replace_cli_hints("Say 'kept restore FILE'.", {}) == "Say 'kept restore FILE' at the command line."
