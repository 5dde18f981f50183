"""A look before anything is kept: at one page, or at what a scope would take in."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from kept.errors import NotFound, SourceUnavailable
from kept.extract.sections import Unreadable
from kept.model.document import ParsedPage
from kept.model.frontier import Fetched, FrontierEntry, Gone, ListingFailure, Redirected, Refused, Unreachable
from kept.origins.origin import Origin

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


async def preview_page(origin: Origin, read: ReadPreviewPage, url: str) -> PagePreview:
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


async def preview_scope(origin: Origin, read: ReadPreviewPage, root: str | None) -> ScopePreview:
    """The pages that the root, its links and the lists of its site name, and which of them would be visited.

    Without a root: those that the origin lists.
    """
    await origin.open()
    made = ScopePreview()
    seen: dict[str, str | None] = {}

    async for one in origin.list(include_excluded=True):
        if isinstance(one, ListingFailure):
            made.unread[one.url] = one.reason
            continue
        if len(seen) >= MAX_PREVIEW_URLS and one.url not in seen:
            made.more = True
            break
        seen.setdefault(one.url, one.excluded)
    if root and not made.more:
        seen |= {link: why for link, why in (await preview_page(origin, read, root)).links.items() if link not in seen}
    for url, why in seen.items():
        why = why or await origin.why_forbidden(url)
        if why is None:
            made.included.append(url)
        else:
            made.left_out[url] = why
    return made
