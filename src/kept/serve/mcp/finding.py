"""Finding and reading: search_docs, read_doc, fetch_url, why_missing."""

from typing import Annotated, Any

from mcp_types import CallToolResult
from pydantic import Field

from kept.errors import WrongCall
from kept.serve.mcp import answers
from kept.serve.mcp.door import LOOKING_OUT, READING, Door, answer
from kept.serve.mcp.envelope import NOTICE, clean, enclosed, shortened
from kept.service import finding, ledger, reading, shapes, wishing
from kept.service.given import Given

CHARACTERS_PER_TOKEN = 4  # about
SEARCHED = 4_000  # tokens of one answer, unless the agent says what it can pay
READ = 32_000  # characters of one answer
LEAST_OF_A_HIT = 500

Query = Annotated[str, Field(description='Words to find; "a phrase" in quotes, -word for without it.')]
Named = Annotated[str | None, Field(description="Only this source: its name, or name@version.")]
Version = Annotated[
    str | None, Field(description="Of the source, or of each, the version that fits: 18, ^18, ~18.2, latest.")
]
Below = Annotated[str, Field(description="Only pages below this path; * stands for a part of it.")]
Kind = Annotated[finding.Kind, Field(description="code: only in code examples.")]
Language = Annotated[str, Field(description="Only in code examples of this language.")]
Around = Annotated[finding.Around | None, Field(description="With what stands around each hit.")]
Budget = Annotated[
    int | None, Field(ge=100, le=50_000, description="Tokens: as many hits as fit, with their contexts.")
]
Limit = Annotated[int, Field(ge=1, le=50, description="How many hits at most.")]
Start = Annotated[int, Field(ge=0, description="Begin at this character: next_start of the answer before.")]


def offer(door: Door) -> None:
    _offer_searching(door)
    _offer_reading(door)
    _offer_explaining(door)


def _offer_searching(door: Door) -> None:
    house = door.house

    @door.tool("Search the documentation", READING)
    async def search_docs(
        query: Query,
        source: Named = None,
        version: Version = None,
        limit: Limit = 5,
        path: Below = "",
        kind: Kind = "text",
        language: Language = "",
        context: Around = None,
        budget: Budget = None,
    ) -> Annotated[CallToolResult, answers.Found]:
        """Find the sections of the kept documentation that answer a question, best first, with their text."""
        found = await finding.find(
            house,
            query,
            labels=(source,) if source else (),
            version=version,
            limit=limit,
            path=path,
            kind=kind,
            language=language,
            context=context,
            budget=SEARCHED if context and budget is None else budget,
        )
        shape = shapes.search(found)
        hits = _within((budget or SEARCHED) * CHARACTERS_PER_TOKEN, shape["hits"])
        return answer(
            enclosed(answers.hits(hits)) if hits else _nothing(found), shape | {"hits": hits, "notice": NOTICE}
        )


def _offer_reading(door: Door) -> None:
    house = door.house

    @door.tool("Read a page", READING)
    async def read_doc(
        url: Annotated[str | None, Field(description="The page's URL, as a hit has it; its #anchor counts.")] = None,
        document: Annotated[str | None, Field(description="The document's id, instead of its URL.")] = None,
        section: Annotated[str | None, Field(description="Only this section: its anchor.")] = None,
        generation: Annotated[int | None, Field(ge=1, description="As an earlier generation had it.")] = None,
        start: Start = 0,
    ) -> Annotated[CallToolResult, answers.Document]:
        """Read a kept page, or one section of it, as Markdown. A long one comes in parts."""
        what = url or document
        if what is None or (url and document):
            raise WrongCall("Say which page to read: either its url or the id of its document.")
        found = await reading.read(house.db, what, section=section, generation=generation, rules=house.rules)
        shape = shapes.page(found)
        shape |= {"notice": NOTICE, **_part(shape["markdown"], start)}
        head = f"{shape['title']}\nurl: {shape['url']}\n{answers.provenance(shape)}"
        return answer(enclosed(f"{head}\n\n{shape['markdown']}") + _more(shape), shape)

    @door.tool("Fetch a page that is not kept", LOOKING_OUT)
    async def fetch_url(
        url: Annotated[str, Field(description="The page's URL.")], start: Start = 0
    ) -> Annotated[CallToolResult, answers.Looked]:
        """Fetch one page from the web, now, and read it as Markdown. Nothing is kept; add_source keeps."""
        wish = wishing.understand(url, Given(), door.caller)
        look = shapes.look(await house.try_page(wish.kind, wish.root, wish.settings))
        shape = look | {"links": look["links"][:50], "notice": NOTICE, **_part(look["markdown"], start)}
        text = enclosed(f"{shape['title'] or ''}\nurl: {shape['url']}\nfetched just now\n\n{shape['markdown']}")
        return answer(text + _more(shape), shape)


def _offer_explaining(door: Door) -> None:
    house = door.house

    @door.tool("Ask why a page is missing", READING)
    async def why_missing(
        url: Annotated[str, Field(description="The page's URL.")],
    ) -> Annotated[CallToolResult, answers.Why]:
        """Say what the last crawl made of a URL, and why it is not there."""
        shape = shapes.why(await ledger.why(house.db, url, house.why_not))
        told = [
            f"{one['source']}: {one['outcome'] or 'not visited yet'}"
            + (f": {one['reason']}" if one["reason"] else "")
            + (f" (found on {one['discovered_from']})" if one["discovered_from"] else "")
            for one in (shape, *shape["others"])
        ]
        return answer(enclosed("\n".join((shape["url"], *told))), shape)


def _nothing(found: finding.Found) -> str:
    meant = f" Perhaps it is spelled otherwise: {found.did_you_mean}." if found.did_you_mean else ""
    return clean(
        f"Nothing was found for: {found.query}.{meant} Try fewer or other words; list_sources says what is kept."
    )


def _within(budget: int, hits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The hits with as much of their texts as the budget has room for; the best have the first choice."""
    left, shown = budget, []
    for number, hit in enumerate(hits, 1):
        kept_back = LEAST_OF_A_HIT * (len(hits) - number)
        text = shortened(hit["text"], max(LEAST_OF_A_HIT, left - kept_back))
        left -= len(text)
        shown.append(hit | {"text": text, "truncated": len(text) < len(hit["text"].rstrip())})
    return shown


def _part(markdown: str, start: int) -> dict[str, Any]:
    """What fits into one answer, and where the next one begins."""
    text = shortened(markdown[start:], READ)
    end = start + len(text)
    return {"markdown": text, "next_start": end if markdown[end:].strip() else None}


def _more(shape: dict[str, Any]) -> str:
    at = shape["next_start"]
    return f"\nThere is more: ask again with start {at}, or for one section." if at else ""
