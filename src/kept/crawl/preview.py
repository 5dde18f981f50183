"""Previews: one page as it would be kept, or the pages that a scope would include. Nothing is stored."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from kept.crawl.companions import CompanionFinder
from kept.errors import NotFound, SourceUnavailable
from kept.model.document import ParsedPage, Unreadable
from kept.model.frontier import Fetched, FrontierEntry, Gone, ListingFailure, Redirected, Refused, Unreachable
from kept.origins.origin import Origin

MAX_PREVIEW_URLS = 2000
MAX_REDIRECTS = 10

ReadPreviewPage = Callable[..., Awaitable[ParsedPage | Unreadable]]  # body, content type, URL, perhaps companions


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePreview:
    """One page as it would be kept."""

    url: str
    status: int | None
    content_type: str
    page: ParsedPage
    links: dict[str, str | None]  # URL -> why it would not be followed; None: it would


@dataclass(slots=True, kw_only=True)
class ScopePreview:
    """The URLs that a crawl would start with."""

    included: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # URL -> reason
    unread: dict[str, str] = field(default_factory=dict)  # list that could not be read -> reason
    more: bool = False  # there are more than MAX_PREVIEW_URLS


async def preview_page(origin: Origin, read: ReadPreviewPage, url: str) -> PagePreview:
    """Fetch and read a page by the rules of a crawl. Raises NotFound or SourceUnavailable if it would not be kept."""
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
                companions = await CompanionFinder(origin).find(visit, url)
                options = {"companions": companions} if companions else {}
                page = await read(visit.body, visit.content_type, url, **options)
                if isinstance(page, Unreadable):
                    raise SourceUnavailable(f"{url} would not be kept: {page.reason}.")
                links = {link: origin.why_excluded(link) for link in page.links}
                return PagePreview(
                    url=url, status=visit.status, content_type=visit.content_type, page=page, links=links
                )
            case Gone(reason=reason):
                raise NotFound(f"There is nothing at {url}: {reason}.")
            case Refused(reason=reason):
                raise SourceUnavailable(f"{url} would not be kept: {reason}.")
            case Unreachable(reason=reason):
                raise SourceUnavailable(f"{url} cannot be read now: {reason}.")
            case _:
                raise SourceUnavailable(f"{url} answered 304 Not Modified to an unconditional request.")
    raise SourceUnavailable(f"{url} redirects more than {MAX_REDIRECTS} times.")


async def preview_scope(origin: Origin, read: ReadPreviewPage, root: str | None) -> ScopePreview:
    """Collect the URLs of the site's lists and of the root's links, and whether a crawl would visit them.

    Without a root: only those that the origin lists.
    """
    await origin.open()
    preview = ScopePreview()
    seen: dict[str, str | None] = {}

    async for listed in origin.list(include_excluded=True):
        if isinstance(listed, ListingFailure):
            preview.unread[listed.url] = listed.reason
            continue
        if len(seen) >= MAX_PREVIEW_URLS and listed.url not in seen:
            preview.more = True
            break
        seen.setdefault(listed.url, listed.excluded)
    if root and not preview.more:
        links = (await preview_page(origin, read, root)).links
        seen |= {link: reason for link, reason in links.items() if link not in seen}
    for url, excluded in seen.items():
        reason = excluded or await origin.why_forbidden(url)
        if reason is None:
            preview.included.append(url)
        else:
            preview.left_out[url] = reason
    return preview
