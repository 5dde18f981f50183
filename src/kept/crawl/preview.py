"""A look before anything is kept: at one page, or at what a scope would take in."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from kept.errors import NotFound, SourceUnavailable
from kept.extract.sections import Unreadable
from kept.model.document import ParsedPage
from kept.model.frontier import Fetched, FrontierEntry, Gone, ListedUrl, Redirected, Refused, Unreachable
from kept.origins.file_tree import TreeOrigin
from kept.origins.folder import FolderOrigin
from kept.origins.web import WebOrigin

MAX_PREVIEW_URLS = 2000  # URLs that a survey looks at
MAX_REDIRECTS = 10

ReadPreviewPage = Callable[[bytes, str, str], Awaitable[ParsedPage | Unreadable]]  # body, content type, URL


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePreview:
    """One page as it would be kept."""

    url: str
    status: int | None
    content_type: str
    reading: ParsedPage
    links: dict[str, str | None]  # where it leads -> why that would not be followed


@dataclass(slots=True, kw_only=True)
class ScopePreview:
    """What a source would begin with."""

    included: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # -> why
    unread: dict[str, str] = field(default_factory=dict)  # lists that could not be read -> why
    more: bool = False  # there are more than were looked at


async def preview_page(origin: WebOrigin | FolderOrigin | TreeOrigin, read: ReadPreviewPage, url: str) -> PagePreview:
    """The page at a URL, by the same gate, rules and readers as in a crawl. Raises where it would not be kept."""
    await origin.open()
    for _ in range(MAX_REDIRECTS):
        visit = await origin.visit(
            FrontierEntry(url=url, depth=0, attempts=0, reached=True, base_version=None), conditional=False
        )
        match visit:
            case Redirected(to=to):
                url = to
            case Fetched():
                url = visit.final_url or url
                found = await read(visit.body, visit.content_type, url)
                if isinstance(found, Unreadable):
                    raise SourceUnavailable(f"{url} would not be kept: {found.reason}.")
                links = {link: origin.why_excluded(link) for link in found.links}
                return PagePreview(
                    url=url, status=visit.status, content_type=visit.content_type, reading=found, links=links
                )
            case Gone(reason=reason):
                raise NotFound(f"There is nothing at {url}: {reason}.")
            case Refused(reason=reason):
                raise SourceUnavailable(f"{url} would not be kept: {reason}.")
            case Unreachable(reason=reason):
                raise SourceUnavailable(f"{url} cannot be read now: {reason}.")
            case _:
                raise SourceUnavailable(f"{url} answered 'not modified' to a question that was not asked.")
    raise SourceUnavailable(f"{url} redirects more than {MAX_REDIRECTS} times.")


async def preview_scope(
    origin: WebOrigin | FolderOrigin | TreeOrigin, read: ReadPreviewPage, root: str | None
) -> ScopePreview:
    """The pages that the root, its links and the lists of its site name, and which of them would be visited.

    Without a root: those that the origin lists.
    """
    await origin.open()
    made = ScopePreview()
    seen: dict[str, str | None] = {}

    def judged(url: str) -> bool:
        if len(seen) < MAX_PREVIEW_URLS:
            seen.setdefault(url, origin.why_excluded(url))
        return len(seen) >= MAX_PREVIEW_URLS  # what is named after the last that is looked at ends the listing

    listing = origin.list(judged) if isinstance(origin, WebOrigin) else origin.list()
    async for one in listing:
        if not isinstance(one, ListedUrl):
            made.unread[one.url] = one.reason
            continue
        seen.setdefault(one.url, None)
        if len(seen) >= MAX_PREVIEW_URLS:
            made.more = True
            break
    if root and not made.more:
        seen |= {link: why for link, why in (await preview_page(origin, read, root)).links.items() if link not in seen}
    for url, why in seen.items():
        if why is None and isinstance(origin, WebOrigin):
            why = await origin.why_forbidden(url)
        if why is None:
            made.included.append(url)
        else:
            made.left_out[url] = why
    return made
