"""Request and response bodies. A class `SourceModel` is the schema `Source` of the OpenAPI document.

Responses are built by `service.serializers`; the models only describe them, and a response may have more fields.
"""

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from kept.model.source import SourceKind
from kept.service.source_options import SourceOptions

NO_CONTROL_CHARACTERS = r"^[^\x00-\x1f\x7f]*$"

LongText = Annotated[str, StringConstraints(max_length=2000, pattern=NO_CONTROL_CHARACTERS)]
ShortText = Annotated[str, StringConstraints(max_length=200, pattern=NO_CONTROL_CHARACTERS)]
SourceLabel = Annotated[
    str, Path(max_length=200, pattern=NO_CONTROL_CHARACTERS, examples=["django@5"], description="name@version")
]
JobId = Annotated[str, Path(max_length=36, pattern=r"^[0-9a-fA-F-]{1,36}$", examples=["0199a2b4"])]
DocumentId = Annotated[
    str,
    Path(
        min_length=1,
        max_length=255,
        pattern=r"^[^\x00-\x1f\x7f/\\]+$",
        description="The id of a document, or the one it had in the manifest it was imported from.",
    ),
]
GenerationNumber = Annotated[int, Query(ge=1, le=2_000_000_000, description="A generation's number.")]
PageLimit = Annotated[int, Query(ge=1, le=1000)]
PageCursor = Annotated[
    str | None, Query(max_length=5000, pattern=NO_CONTROL_CHARACTERS, description="'next' of the page before.")
]
Priority = Annotated[
    int,
    Field(ge=-1000, le=1000, description="Of several waiting crawls, the one with the highest priority runs first."),
]


class RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SourceInModel(RequestBody):
    """The settings of a source, named as on the command line. Those not given stay as they are."""

    max_pages: int | None = Field(None, ge=1, le=1_000_000_000)
    max_depth: int | None = Field(None, ge=0, le=1_000_000)
    max_time: ShortText | None = Field(None, description="90s, 15m, 2h", examples=["15m"])
    no_traps: bool | None = Field(None, description="follow endless calendars and combinations of parameters too")
    not_a_trap: list[LongText] | None = Field(None, max_length=100, description="paths that are no trap (globs)")
    scope: list[LongText] | None = Field(None, max_length=100, description="folder, host, or beginnings of URLs")
    include: list[LongText] | None = Field(None, max_length=100)
    exclude: list[LongText] | None = Field(None, max_length=100)
    header: list[LongText] | None = Field(None, max_length=20, description="'Name: value', sent to the site")
    cookie: LongText | None = None
    user_agent: ShortText | None = None
    proxy: LongText | None = None
    ca_file: LongText | None = None
    select: LongText | None = None
    drop: list[LongText] | None = Field(None, max_length=100)
    render: Literal["auto", "never", "always"] | None = None
    ignore_robots: bool | None = None
    concurrency: int | None = Field(None, ge=1, le=64)
    delay: float | None = Field(None, ge=0, le=3600, allow_inf_nan=False)
    tag: list[ShortText] | None = Field(None, max_length=100)
    schedule: ShortText | None = Field(None, description="6h, 1d, five fields of cron (UTC), auto; off")
    webhook: LongText | None = None
    webhook_secret: ShortText | None = None
    hook_secret: ShortText | None = None

    def to_options(self, *, clear_null: bool = False) -> SourceOptions:
        """Return the settings of the request. ``clear_null``: a setting that is null is cleared, not left alone."""
        options = {name: getattr(self, name) for name in SourceInModel.model_fields}
        if clear_null:
            options |= {name: "" for name in self.model_fields_set if options.get(name, ...) is None}
        return SourceOptions(**options)


class NewSourceModel(SourceInModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"root": "https://docs.example.com/", "name": "docs", "max_pages": 500}]},
    )

    root: LongText
    name: ShortText | None = None
    version: ShortText | None = None
    priority: Priority = 0


class PageModel(SourceInModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"url": "https://docs.example.com/pool.html"}]}
    )

    url: LongText


class NewCrawlModel(RequestBody):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"mode": "quick", "priority": 5}]})

    mode: Literal["refresh", "full", "failed", "quick"] = "refresh"
    priority: Priority = 0


class BackToModel(RequestBody):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"generation": 3}]})

    generation: int = Field(ge=1, le=2_000_000_000)


class KnowledgeItemModel(BaseModel):
    """A request for a crawl, as the job queue's contract has it."""

    model_config = ConfigDict(
        extra="forbid",  # what is not obeyed is refused
        json_schema_extra={"examples": [{"url": "https://docs.example.com/", "max_depth": 3}]},
    )

    url: LongText
    max_depth: int | None = Field(None, ge=0, le=1_000_000)
    depth: int | None = Field(None, ge=0, le=1_000_000, description="The same as max_depth.")
    priority: Priority = 0
    tags: list[ShortText] | None = Field(None, max_length=100)

    @model_validator(mode="after")
    def _check_depths(self) -> "KnowledgeItemModel":
        if None not in (self.depth, self.max_depth) and self.depth != self.max_depth:
            raise ValueError("depth and max_depth are the same setting, and should be equal")
        return self


# Responses -----------------------------------------------------------------------------------------------------


class ResponseBody(BaseModel):
    model_config = ConfigDict(extra="allow")


class CountsModel(ResponseBody):
    new: int
    changed: int
    unchanged: int
    moved: int
    gone: int
    failed: int
    skipped: int
    dead_links: int = 0


class CrawlModel(ResponseBody):
    source: str
    job: str
    status: str
    generation: int | None
    held: bool
    partial: bool
    counts: CountsModel


class ProgressModel(CountsModel):
    percent: int
    discovered: int
    done: int
    bytes: int
    rate: float
    eta_seconds: float | None
    current_depth: int


class RemovalReasonModel(ResponseBody):
    reason: str
    count: int


class JobModel(ResponseBody):
    id: str
    source: str
    status: Literal["pending", "processing", "paused", "completed", "failed", "cancelled"]
    mode: str
    priority: int
    attempt: int
    retry_count: int
    max_retries: int
    workers: int
    progress: ProgressModel
    created_at: str
    started_at: str | None
    completed_at: str | None
    error: str | None
    owner: str | None
    removed: list[RemovalReasonModel]


class JobsModel(ResponseBody):
    jobs: list[JobModel]
    next: str | None


class SourceModel(ResponseBody):
    source: str
    name: str
    version: str
    kind: SourceKind
    root: str
    state: str
    generation: int | None
    documents: int
    sections: int
    partial: bool
    settings: dict[str, Any]


class SourcesModel(ResponseBody):
    sources: list[SourceModel]


class RemovedModel(ResponseBody):
    source: str
    removed: Literal[True]


class GenerationModel(ResponseBody):
    number: int
    state: str
    born: str
    documents: int
    counts: CountsModel
    partial: bool
    job: str | None


class GenerationsModel(ResponseBody):
    source: str
    active: int | None
    generations: list[GenerationModel]


class DecidedModel(ResponseBody):
    source: str
    generation: int


class MoveModel(ResponseBody):
    to: str
    document: str


class DifferenceModel(ResponseBody):
    source: str
    to: int
    added: list[str]
    removed: list[str]
    changed: list[str]
    moved: list[MoveModel]


class ChangesModel(ResponseBody):
    since: str | None
    changes: list[dict[str, Any]]
    next: str | None


class DocumentsModel(ResponseBody):
    source: str
    generation: int
    documents: list[dict[str, Any]]
    next: str | None


class HitModel(ResponseBody):
    source: str
    version: str
    generation: int
    document: str
    section: int
    url: str
    title: str
    headings: list[str]
    anchor: str | None
    snippet: str
    text: str
    score: float
    fetched_at: str
    verified_at: str
    partial: bool
    also: list[dict[str, str]]
    context: str | None = None


class HitsModel(ResponseBody):
    query: str
    hits: list[HitModel]
    did_you_mean: str | None = Field(None, description="The spelling that was searched, if a word is unknown.")
    without: list[str] = Field(description="The words that the query excluded.")
    vectors_missing: int | None = Field(None, description="With semantic search: how many sections have no vector yet.")
    not_reranked: str | None = Field(None, description="With a reranker: why the hits were not reranked.")


class DocumentTextModel(ResponseBody):
    document: str
    source: str
    version: str
    generation: int
    url: str
    title: str
    markdown: str


class HistoryModel(ResponseBody):
    document: str
    source: str
    lifecycle: str
    versions: list[dict[str, Any]]


class TextDifferenceModel(ResponseBody):
    source: str
    document: str
    to: int
    change: str | None
    hunks: list[dict[str, Any]]


class WhyModel(ResponseBody):
    url: str
    outcome: str | None
    reason: str | None


class LookModel(ResponseBody):
    url: str
    title: str
    markdown: str


class QueuedModel(ResponseBody):
    job_id: str
    progress_id: str


class CrawlProgressModel(ResponseBody):
    progress_id: str
    status: str
    progress_percentage: int


def describe_response(
    model: type[BaseModel], status: int = 200, description: str = "Done."
) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a route whose successful answer is this model."""
    return {status: {"model": model, "description": description}}


ADD_SOURCE_RESPONSES = describe_response(CrawlModel, 201, "The source is new; its first crawl.") | describe_response(
    CrawlModel, 200, "The source was known; a crawl of it."
)
