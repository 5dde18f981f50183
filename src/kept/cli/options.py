"""Arguments and options of the commands. The settings of a source are in ``source_options``."""

from typing import Annotated

import typer


def complete_source(incomplete: str) -> list[str]:
    """List the sources that complete a word."""
    from kept.cli.completion import list_source_labels

    return [label for label in list_source_labels() if label.startswith(incomplete)]


# Arguments

RootArgument = Annotated[
    str,
    typer.Argument(
        metavar="ROOT",
        help="A web site, a folder, a file, a git repository, npm: or pypi:NAME; @urls.txt.",
        show_default=False,
    ),
]
SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="A source: its name, or name@version.", show_default=False, autocompletion=complete_source
    ),
]
NewNameArgument = Annotated[
    str, typer.Argument(metavar="NEW", help="The new name, or name@version.", show_default=False)
]
QueryArgument = Annotated[list[str], typer.Argument(metavar="QUERY", help="Words to find.", show_default=False)]
DocumentArgument = Annotated[
    str, typer.Argument(metavar="URL|PATH|ID", help="A document, as search results name it.", show_default=False)
]
GenerationNumberArgument = Annotated[
    int, typer.Argument(metavar="N", min=1, help="A generation's number.", show_default=False)
]
FromGenerationArgument = Annotated[
    int, typer.Argument(metavar="A", min=1, help="An earlier generation.", show_default=False)
]
ToGenerationArgument = Annotated[
    int, typer.Argument(metavar="B", min=1, help="A later generation.", show_default=False)
]

PageArgument = Annotated[str, typer.Argument(metavar="URL|PATH", help="A page or a file.", show_default=False)]
PageOrSourceArgument = Annotated[
    str, typer.Argument(metavar="URL|PATH|NAME", help="A page, or a whole source.", show_default=False)
]
JobIdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="A job's id, or its last characters.", show_default=False)
]

# Options of every command

DatabaseOption = Annotated[
    str | None, typer.Option(metavar="URL", help="sqlite:///file.db or postgresql://user@host/name.")
]
ConfigOption = Annotated[str | None, typer.Option(metavar="FILE", help="Settings file, instead of the usual ones.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", help="Log everything to standard error.")]
ShowVersionOption = Annotated[bool, typer.Option("--version", help="Print the version of Kept.")]

# Options of crawls

SourceNameOption = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name of the source.")]
RootKindOption = Annotated[
    str | None, typer.Option("--as", metavar="web|git", help="The kind of the root, where both are possible.")
]
VersionLabelOption = Annotated[
    str | None, typer.Option("--version", metavar="LABEL", help="Version label of the source: name@LABEL.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would be included.")]
FullOption = Annotated[bool, typer.Option("--full", help="Fetch every page again, changed or not.")]
FailedOnlyOption = Annotated[bool, typer.Option("--failed-only", help="Only visit the pages that failed last time.")]
QuickOption = Annotated[bool, typer.Option("--quick", help="Only visit pages that are likely to have changed.")]
PriorityOption = Annotated[
    int, typer.Option(metavar="N", min=-1000, max=1000, help="Pending crawls with a higher priority run first.")
]
NoWaitOption = Annotated[bool, typer.Option("--no-wait", help="Queue the crawl and return; a worker runs it.")]
JobStatusOption = Annotated[
    str | None, typer.Option(metavar="STATUS", help="Only jobs in this state: pending, processing, paused …")
]
WorkerNameOption = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Name of the worker in 'kept job'; default: the name of this machine."),
]
WorkerConcurrencyOption = Annotated[
    int, typer.Option("--concurrency", metavar="N", min=1, max=64, help="Concurrent crawls.")
]
BehindOption = Annotated[bool, typer.Option("--behind", hidden=True)]  # for 'kept serve', which starts one

# Options of search and reading

SourceFilterOption = Annotated[
    list[str] | None, typer.Option("--source", metavar="NAME", help="Only in this source. May be repeated.")
]
HitLimitOption = Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Maximum number of hits.")]
VersionFilterOption = Annotated[
    str | None, typer.Option("--version", metavar="V", help="The version of each source that matches: 18, ^18, latest.")
]
PathFilterOption = Annotated[
    str, typer.Option("--path", metavar="PATH", help="Only pages below: ref/models, 'guide/*'.")
]
HitKindOption = Annotated[str, typer.Option("--kind", metavar="text|code", help="code: only in code examples.")]
LanguageOption = Annotated[str, typer.Option("--language", metavar="NAME", help="Only code examples in this language.")]
ContextOption = Annotated[
    str | None, typer.Option("--context", metavar="parent|siblings|document", help="Text to show around each hit.")
]
BudgetOption = Annotated[
    int | None, typer.Option(metavar="TOKENS", min=1, help="Stop when the hits have this many tokens.")
]
AtGenerationOption = Annotated[
    int | None, typer.Option("--generation", metavar="N", min=1, help="As of this generation.")
]
ExampleLimitOption = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="How many URLs to list of each kind.")
]
OptionalDocumentArgument = Annotated[
    str | None, typer.Argument(metavar="[URL|PATH|ID]", help="Only this document, line by line.", show_default=False)
]
OptionalSourceArgument = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="Only this source: name, or name@version.", show_default=False),
]
SinceOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only after this: 2026-11-01, 2026-11-01T12:00, 2d.")
]
ChangeLimitOption = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="Maximum number of results.")
]
CursorOption = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Continue after this cursor: the 'next' of the previous answer.")
]
SectionOption = Annotated[str | None, typer.Option(metavar="ANCHOR", help="Only this section.")]
HostOption = Annotated[
    str, typer.Option(help="The address to listen at; any but loopback needs keys.", metavar="ADDRESS")
]
PortOption = Annotated[int, typer.Option(min=0, max=65535, help="The port to listen at; 0: any that is free.")]
WorkersOption = Annotated[int, typer.Option(min=0, max=64, help="Concurrent crawls in this process.")]

# Options of maintenance

ExportFolderArgument = Annotated[str, typer.Argument(metavar="DIR", help="A folder: new, empty, or an earlier export.")]
ExportPathArgument = Annotated[
    str,
    typer.Argument(metavar="DIR|MANIFEST", help="A folder or manifest that 'kept export' wrote.", show_default=False),
]
TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="The export is your own: take headers with secrets, private hosts, webhooks, schedules and the like.",
    ),
]
OptionalSourcesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these sources.", show_default=False)
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
BackupFileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="A backup of the database.", show_default=False)
]
TreeOnlyOption = Annotated[bool, typer.Option("--tree", help="Write only Markdown files, in the folders of the site.")]
KeepGenerationsOption = Annotated[
    int | None, typer.Option("--keep", metavar="N", min=1, help="Number of generations with changes to keep.")
]
OlderThanOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Keep generations younger than this: 30d, 12h.")
]
GcDryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only list what would be deleted, and why.")]
KeyNameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the key.", show_default=False)]
KeyScopeOption = Annotated[str, typer.Option("--scope", metavar="read|write|admin", help="What the key permits.")]
ReadOnlyOption = Annotated[bool, typer.Option("--read-only", help="Offer only tools that read.")]
ShellArgument = Annotated[
    str, typer.Argument(metavar="bash|zsh|fish", help="The shell to complete in.", show_default=False)
]
