"""Keeping: ``add``, ``set`` and ``refresh``."""

from dataclasses import replace

import typer

from kept.cli import options, show
from kept.cli.command import Call
from kept.cli.crawl import crawl
from kept.cli.setting import Given, takes_settings
from kept.errors import NoSuchThing, WrongCall
from kept.model.job import CrawlMode
from kept.model.root import derive_name, parse_root, split_login
from kept.model.source import Access, Scope, SourceKind, SourceSettings, host_and_port
from kept.model.url import canonical, file_path
from kept.runtime import check, look_at_root, survey
from kept.service import sources


@takes_settings
async def add(
    context: typer.Context,
    root: options.Root,
    name: options.Called = None,
    version: options.Label = "",
    priority: options.Priority = 0,
    dry_run: options.DryRun = False,
    no_wait: options.NoWait = False,
    *,
    given: Given,
) -> int | None:
    """Keep a web site, a folder or a file of documentation.

    \b
    kept add https://docs.example.com/guide/
    kept add https://wiki.example.com/ --header 'Authorization: Bearer env:TOKEN'
    kept add @urls.txt --name clippings
    kept add ~/src/django/docs --name django --version 5.2
    kept add notes --include '*.md' --exclude 'drafts/*'

    The same root again is a refresh; settings that are given again are changed.
    """
    call: Call = context.obj
    kind, url = parse_root(root)
    begin = first_settings(root, kind, url)
    asked = given.over(begin)
    _check_headers(asked)
    check(kind, url, asked)
    if dry_run:
        found = await survey(call.settings, kind, url, asked)
        if call.as_json:
            from kept.service import shapes

            call.answer(shapes.survey(url, found))
        else:
            show.survey(call.out, url, found)
        return None
    if not no_wait or kind is SourceKind.FOLDER:
        await look_at_root(call.settings, kind, url, asked)
    async with call.open(create=True) as runtime:
        source, is_new = await sources.add_source(
            runtime.db,
            root=url,
            kind=kind,
            name=name or derive_name(url),
            version=version,
            settings=asked,
            secrets=runtime.secrets,
            numbered=name is None,
            rhythm=runtime.rhythm,
        )
        if not is_new and (given or begin.access.headers or begin.scope.pages):
            source = await sources.set_source(
                runtime.db, source.label, lambda old: given.over(_again(old, begin)), runtime.secrets, runtime.rhythm
            )
        if not is_new and name and name != source.name:
            call.err.line(f"{source.root} is kept already, as '{source.label}'.")
        return await crawl(call, runtime, source, priority=priority, wait=not no_wait)


@takes_settings
async def set_(context: typer.Context, name: options.Name, *, given: Given) -> None:
    """Change settings of a source, from its next crawl on.

    An empty text clears a setting: --include '', --header 'Authorization:'.

    \b
    kept set django@5.2 --exclude 'releases/*'
    kept set wiki --header 'Authorization: Bearer env:TOKEN'
    """
    call: Call = context.obj
    if not given:
        raise WrongCall("Say what to change. See 'kept set --help'.")
    async with call.open() as runtime:
        before = (await sources.show_source(runtime.db, name)).source
        _check_headers(given.over(before.settings))
        check(before.kind, before.root, given.over(before.settings))
        await sources.set_source(runtime.db, name, given.over, runtime.secrets, runtime.rhythm)
        view = await sources.show_source(runtime.db, name, runtime.rhythm)
    if call.as_json:
        from kept.service import shapes

        call.answer(shapes.source(view))
    else:
        call.out.line(f"{view.source.label} is set; it holds from the next crawl on.")


async def refresh(
    context: typer.Context,
    name: options.Name,
    full: options.Full = False,
    failed_only: options.FailedOnly = False,
    quick: options.Quick = False,
    priority: options.Priority = 0,
    no_wait: options.NoWait = False,
) -> int:
    """Bring a source up to date: its next generation.

    \b
    kept refresh django@5.2
    kept refresh django@5.2 --failed-only
    kept refresh django@5.2 --quick
    """
    call: Call = context.obj
    asked = {"--full": full, "--failed-only": failed_only, "--quick": quick}
    if sum(asked.values()) > 1:
        said = " and ".join(name for name, given in asked.items() if given)
        raise WrongCall(f"{said} exclude each other: say which of them you want.")
    mode = CrawlMode.FULL if full else CrawlMode.FAILED if failed_only else CrawlMode.REFRESH
    mode = CrawlMode.QUICK if quick else mode
    async with call.open() as runtime:
        source = (await sources.show_source(runtime.db, name)).source
        return await crawl(call, runtime, source, mode=mode, priority=priority, wait=not no_wait)


def first_settings(root: str, kind: SourceKind, url: str) -> SourceSettings:
    """What the root itself says: who may be asked, as whom, for which pages.

    Whoever names a root here has allowed exactly that host and port, public or not.
    """
    if kind is not SourceKind.WEB:
        return SourceSettings()
    pages = _pages(file_path(url)) if url.startswith("file:") else ()
    allowed = tuple(dict.fromkeys(host_and_port(page) for page in pages or (url,)))
    _, login = split_login(root)
    return SourceSettings(scope=Scope(pages=pages), access=Access(allowed=allowed, headers=(login,) if login else ()))


def _again(settings: SourceSettings, begin: SourceSettings) -> SourceSettings:
    """The settings of a source whose root is named once more."""
    kept = {header.name.lower(): header for header in (*settings.access.headers, *begin.access.headers)}
    return replace(
        settings,
        scope=replace(settings.scope, pages=begin.scope.pages),
        access=replace(settings.access, allowed=begin.access.allowed, headers=tuple(kept.values())),
    )


def _check_headers(settings: SourceSettings) -> None:
    """A header goes to one site, so a list of pages of several cannot have any."""
    if settings.access.headers and len({host_and_port(page) for page in settings.scope.pages}) > 1:
        raise WrongCall("A header or cookie is for one site only, and these pages are of several: make a list of each.")


def _pages(file: str) -> tuple[str, ...]:
    """The URLs in a file, one a line. Empty lines, and those that begin with #, do not count."""
    try:
        with open(file, encoding="utf-8", errors="replace") as lines:
            texts = [(number, line.strip()) for number, line in enumerate(lines, 1)]
    except FileNotFoundError:
        raise NoSuchThing(f"There is no file {file}.") from None
    found: dict[str, None] = {}
    for number, text in texts:
        if not text or text.startswith("#"):
            continue
        bare, login = split_login(text)
        url = canonical(bare)
        if url is None or not url.startswith("http") or login:
            what = "has a password in it" if login else "is not the URL of a web page"
            raise WrongCall(f"Line {number} of {file} {what}. It takes one URL a line.")
        found[url] = None
    if not found:
        raise WrongCall(f"{file} has no URL in it. It takes one URL a line.")
    return tuple(found)
