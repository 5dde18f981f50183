"""A look before anything is kept: at one page, or at what a scope would take in."""

from collections.abc import Awaitable, Callable
from dataclasses import field

from kept.errors import NoSuchThing, SourceUnavailable
from kept.extract.sections import Unreadable
from kept.model.document import Reading
from kept.model.frontier import Entry, Fetched, Gone, Listed, Redirected, Refused, Unreachable
from kept.model.nouns import dataclass
from kept.origins.folder import FolderOrigin
from kept.origins.tree import TreeOrigin
from kept.origins.web import WebOrigin

MOST = 2000  # URLs that a survey looks at
HOPS = 10

Read = Callable[[bytes, str, str], Awaitable[Reading | Unreadable]]  # body, content type, URL


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One page as it would be kept."""

    url: str
    status: int | None
    content_type: str
    reading: Reading
    links: dict[str, str | None]  # where it leads -> why that would not be followed


@dataclass(slots=True, kw_only=True)
class Survey:
    """What a source would begin with."""

    included: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # -> why
    unread: dict[str, str] = field(default_factory=dict)  # lists that could not be read -> why
    more: bool = False  # there are more than were looked at


async def look(origin: WebOrigin | FolderOrigin | TreeOrigin, read: Read, url: str) -> Look:
    """The page at a URL, by the same gate, rules and readers as in a crawl. Raises where it would not be kept."""
    await origin.open()
    for _ in range(HOPS):
        visit = await origin.visit(Entry(url=url, depth=0, attempts=0, reached=True, held=None), conditional=False)
        match visit:
            case Redirected(to=to):
                url = to
            case Fetched():
                url = visit.came_from or url
                found = await read(visit.body, visit.content_type, url)
                if isinstance(found, Unreadable):
                    raise SourceUnavailable(f"{url} would not be kept: {found.reason}.")
                links = {link: origin.why_not(link) for link in found.links}
                return Look(url=url, status=visit.status, content_type=visit.content_type, reading=found, links=links)
            case Gone(reason=reason):
                raise NoSuchThing(f"There is nothing at {url}: {reason}.")
            case Refused(reason=reason):
                raise SourceUnavailable(f"{url} would not be kept: {reason}.")
            case Unreachable(reason=reason):
                raise SourceUnavailable(f"{url} cannot be read now: {reason}.")
            case _:
                raise SourceUnavailable(f"{url} answered 'not modified' to a question that was not asked.")
    raise SourceUnavailable(f"{url} redirects more than {HOPS} times.")


async def survey(origin: WebOrigin | FolderOrigin | TreeOrigin, read: Read, root: str | None) -> Survey:
    """The pages that the root, its links and the lists of its site name, and which of them would be visited.

    Without a root: those that the origin lists.
    """
    await origin.open()
    made = Survey()
    seen: dict[str, str | None] = {}

    def judged(url: str) -> bool:
        if len(seen) < MOST:
            seen.setdefault(url, origin.why_not(url))
        return len(seen) >= MOST  # what is named after the last that is looked at ends the listing

    listing = origin.list(judged) if isinstance(origin, WebOrigin) else origin.list()
    async for one in listing:
        if not isinstance(one, Listed):
            made.unread[one.url] = one.reason
            continue
        seen.setdefault(one.url, None)
        if len(seen) >= MOST:
            made.more = True
            break
    if root and not made.more:
        seen |= {link: why for link, why in (await look(origin, read, root)).links.items() if link not in seen}
    for url, why in seen.items():
        if why is None and isinstance(origin, WebOrigin):
            why = await origin.forbidden(url)
        if why is None:
            made.included.append(url)
        else:
            made.left_out[url] = why
    return made
