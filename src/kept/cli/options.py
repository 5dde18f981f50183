"""The arguments and options that commands have in common or that would hide a command's signature."""

from typing import Annotated

import typer


def known_sources(incomplete: str) -> list[str]:
    """For a shell: the sources that a word may become."""
    from kept.cli.completing import labels

    return [label for label in labels() if label.startswith(incomplete)]


# Arguments

Root = Annotated[
    str,
    typer.Argument(
        metavar="ROOT",
        help="A web site, a folder, a file, a git repository, npm: or pypi:NAME; @urls.txt.",
        show_default=False,
    ),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="A source: its name, or name@version.", show_default=False, autocompletion=known_sources
    ),
]
Query = Annotated[list[str], typer.Argument(metavar="QUERY", help="Words to find.", show_default=False)]
What = Annotated[
    str, typer.Argument(metavar="URL|PATH|ID", help="A document, as search results name it.", show_default=False)
]
Generation = Annotated[int, typer.Argument(metavar="N", min=1, help="A generation's number.", show_default=False)]
FromGeneration = Annotated[int, typer.Argument(metavar="A", min=1, help="An earlier generation.", show_default=False)]
ToGeneration = Annotated[int, typer.Argument(metavar="B", min=1, help="A later generation.", show_default=False)]

Page = Annotated[str, typer.Argument(metavar="URL|PATH", help="A page or a file.", show_default=False)]
Unkept = Annotated[str, typer.Argument(metavar="URL|PATH|NAME", help="A page, or a whole source.", show_default=False)]
Job = Annotated[str, typer.Argument(metavar="ID", help="A job's id, or how it begins.", show_default=False)]

# Options of every command

Database = Annotated[str | None, typer.Option(metavar="URL", help="sqlite:///file.db or postgresql://user@host/name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON value.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Tell everything, on standard error.")]
Version = Annotated[bool, typer.Option("--version", help="Say which Kept this is.")]

# Options of crawls

Called = Annotated[str | None, typer.Option("--name", metavar="NAME", help="What to call it.")]
As = Annotated[str | None, typer.Option("--as", metavar="web|git", help="What the root is, where both could be.")]
Label = Annotated[
    str | None, typer.Option("--version", metavar="LABEL", help="Which version of it this is: name@LABEL.")
]
MaxPages = Annotated[int | None, typer.Option(metavar="N", min=1, help="Keep no more documents than these.")]
MaxTime = Annotated[str | None, typer.Option(metavar="TIME", help="Take in nothing new after 90s, 15m, 2h.")]
MaxDepth = Annotated[int | None, typer.Option(metavar="N", min=0, help="On a site: follow no more links in a row.")]
Within = Annotated[
    list[str] | None,
    typer.Option("--scope", metavar="folder|host|PREFIX", help="On a site: what belongs to it. May be repeated."),
]
IgnoreRobots = Annotated[
    bool | None,
    typer.Option(
        "--ignore-robots/--obey-robots",
        help="The site is yours: robots.txt, noindex and nofollow do not count.",
        show_default=False,
    ),
]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="'K: V'", help="Told to the site; better 'K: env:NAME'. May be repeated."),
]
Cookie = Annotated[str | None, typer.Option(metavar="A=B", help="Told to the site as a cookie; better 'A=env:NAME'.")]
Proxy = Annotated[str | None, typer.Option(metavar="URL", help="Ask the site through this; env:NAME hides it.")]
CaFile = Annotated[str | None, typer.Option(metavar="FILE", help="Certificates to trust besides the system's.")]
Select = Annotated[str | None, typer.Option(metavar="CSS", help="Read only this part of each HTML page.")]
Drop = Annotated[list[str] | None, typer.Option(metavar="CSS", help="Leave this part out. May be repeated.")]
Render = Annotated[str | None, typer.Option(metavar="auto|never|always", help="Open pages in a browser first.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="A word of yours. May be repeated.")]
Schedule = Annotated[
    str | None,
    typer.Option(metavar="EVERY|CRON", help="Refresh it by itself: 6h, 1d, '0 3 * * *' (UTC), auto; off."),
]
Webhook = Annotated[str | None, typer.Option(metavar="URL", help="Tell this URL what came of its crawls.")]
Watch = Annotated[
    bool | None,
    typer.Option("--watch/--no-watch", help="A folder: stay, and refresh it when files change.", show_default=False),
]
HookSecret = Annotated[
    str | None, typer.Option(metavar="SECRET", help="Signs hooks that ask for a refresh of it; better env:NAME.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be included.")]
Concurrency = Annotated[int | None, typer.Option(metavar="N", min=1, max=64, help="Requests to the site at once.")]
Delay = Annotated[float | None, typer.Option(metavar="SECONDS", min=0, help="Between requests to the site.")]
UserAgent = Annotated[str | None, typer.Option(metavar="TEXT", help="What to tell the site instead of Kept's name.")]
Include = Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Only these paths. May be repeated.")]
Exclude = Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Not these paths. May be repeated.")]
Full = Annotated[bool, typer.Option("--full", help="Read everything again, changed or not.")]
FailedOnly = Annotated[bool, typer.Option("--failed-only", help="Only what could not be read last time.")]
Quick = Annotated[bool, typer.Option("--quick", help="Only where something probably changed.")]
Priority = Annotated[
    int, typer.Option(metavar="N", min=-1000, max=1000, help="Of several waiting crawls the highest goes first.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Only ask for the crawl; whoever is free runs it.")]
Status = Annotated[str | None, typer.Option(metavar="STATUS", help="Only these: pending, processing, paused …")]
WorkerName = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="What to call it in 'kept job'; else this machine's name.")
]
WorkerConcurrency = Annotated[
    int, typer.Option("--concurrency", metavar="N", min=1, max=64, help="How many crawls at once.")
]
Behind = Annotated[bool, typer.Option("--behind", hidden=True)]  # for 'kept serve', which starts one

# Options of search and reading

Sources = Annotated[list[str] | None, typer.Option("--source", metavar="NAME", help="Only here. May be repeated.")]
Limit = Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many hits at most.")]
OfVersion = Annotated[
    str | None, typer.Option("--version", metavar="V", help="Of each source the version that fits: 18, ^18, latest.")
]
Below = Annotated[str, typer.Option("--path", metavar="PATH", help="Only pages below: ref/models, 'guide/*'.")]
Kind = Annotated[str, typer.Option("--kind", metavar="text|code", help="code: only in code examples.")]
Language = Annotated[str, typer.Option("--language", metavar="NAME", help="Only code examples in this language.")]
Around = Annotated[
    str | None, typer.Option("--context", metavar="parent|siblings|document", help="With what stands around each hit.")
]
Budget = Annotated[int | None, typer.Option(metavar="TOKENS", min=1, help="As many hits as fit into so many tokens.")]
AsOf = Annotated[int | None, typer.Option("--generation", metavar="N", min=1, help="As of this generation.")]
Examples = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="How many URLs of each kind.")]
OneDocument = Annotated[
    str | None, typer.Argument(metavar="[URL|PATH|ID]", help="Only this document, line by line.", show_default=False)
]
AnyName = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="Only this source: name, or name@version.", show_default=False),
]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="Only after this: 2026-11-01, 2026-11-01T12:00, 2d.")]
MostChanges = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="How many at most.")]
Cursor = Annotated[str | None, typer.Option(metavar="TEXT", help="Go on after this: the 'next' of the answer before.")]
Section = Annotated[str | None, typer.Option(metavar="ANCHOR", help="Only this section.")]
Host = Annotated[str, typer.Option(help="The address to listen at; any but loopback needs keys.", metavar="ADDRESS")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port to listen at; 0: any that is free.")]
Workers = Annotated[int, typer.Option(min=0, max=64, help="How many crawls may run here at once.")]

# Options of upkeep

ExportFolder = Annotated[str, typer.Argument(metavar="DIR", help="A folder: new, empty, or an earlier export.")]
Export = Annotated[str, typer.Argument(metavar="DIR|MANIFEST", help="What 'kept export' wrote.", show_default=False)]
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these.", show_default=False)]
File = Annotated[str, typer.Argument(metavar="FILE", help="A backup of the database.", show_default=False)]
Tree = Annotated[bool, typer.Option("--tree", help="Only Markdown files for reading, as they lie below the root.")]
KeepGenerations = Annotated[
    int | None, typer.Option("--keep", metavar="N", min=1, help="Keep so many generations that changed something.")
]
OlderThan = Annotated[str | None, typer.Option(metavar="TIME", help="Keep all that are younger: 30d, 12h.")]
GcDryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would go, and why.")]
KeyName = Annotated[str, typer.Argument(metavar="NAME", help="What to call the key.", show_default=False)]
KeyScope = Annotated[str, typer.Option("--scope", metavar="read|write|admin", help="What it opens.")]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Offer only tools that read.")]
Shell = Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell that completes.", show_default=False)]
