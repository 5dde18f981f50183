"""What an error says where there are no commands and no options."""

from kept.errors import NoSuchThing, WrongCall
from kept.serve.mcp.door import sentence
from kept.serve.problems import translated
from kept.serve.wording import without_commands, worded

NO_SOURCE = "There is no source named 'djano'. 'kept list' shows what there is."
TAKEN = "There is already a source named '--name'. Choose another name with --name, or --max-pages."


def test_each_door_says_an_error_in_its_own_words() -> None:
    assert b"GET /api/v1/sources shows what there is." in translated(NoSuchThing(NO_SOURCE)).body
    assert sentence(NoSuchThing(NO_SOURCE)) == "There is no source named 'djano'. list_sources shows what there is."
    assert without_commands(NO_SOURCE) == "There is no source named 'djano'."
    for said in (worded(TAKEN, {}), without_commands(TAKEN), sentence(WrongCall(TAKEN))):
        assert said == "There is already a source named '--name'. Choose another name with name, or max_pages."
    assert worded("Say 'kept restore FILE'.", {}) == "Say 'kept restore FILE' at the command line."
