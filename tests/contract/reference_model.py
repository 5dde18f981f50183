"""A reference model of a source in plain Python: dicts and a few rules, without SQL and without the engine.

    World             the state of the origin during a crawl
    visit_all         the result of a crawl for every URL
    ReferenceModel    one source: its documents, and everything each of its generations shows

It follows the specification rule by rule, and is slow and simple so that it can be trusted. Two things are inputs: the
depth of a URL (which depends on the order of visits), and the new URLs that a limit kept out; ``ReferenceModel.finish``
checks the second as far as possible.

Assumptions, where the specification is silent:

- "2 crawls and 7 days": the crawl that misses a document starts its grace; it ends with the second crawl after that,
  once the days are over. A crawl counts when it is activated.
- A document that is missing or in error and then fails, or is missing again for another reason, keeps the state
  of the table: failing makes ``error`` out of ``missing``, and the grace starts anew after it.
- A document that is not reached in an incomplete crawl (a limit, an unread list) stays missing if it was.
- One that is not reached but redirects is moved, hence active; the next crawl may find it missing there.
- A redirect whose end is gone, failed or skipped, and is no document, shares that fate. One that ends at a document
  merges with it whatever the outcome of that document in this crawl, unless it is gone. One whose end a limit kept out
  failed: its target was not visited.
- A document that redirects (merged, or its target is taken) is settled by that: its content is not matched elsewhere.
- "The missing" of rule 3 are those without content: not listed, or skipped in this crawl as well.
- Rule 4, several documents that last lived at this URL: the one that was there last.
- A repair treats its visits as every crawl does; other documents stay as they are. A repair and a rollback show the
  documents kept under the settings of their base, or of the generation they go back to. A repair without a base is a
  first crawl.
- The ledger of a held crawl is the latest one: a repair visits what failed in it.
- The retained generations are a range: all from the oldest one that has to be kept.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kept.crawl.lifecycle import LifecycleRules
from tests.factories import Page

TINY = 64  # characters


def read(text: str, signature: str) -> str:
    """Return the content that a reader extracts. Readers 1 and 2 agree, reader 3 does not."""
    return f"read again: {text}" if signature == "3" else text


@dataclass(frozen=True, kw_only=True)
class World:
    """The state of the origin, and of the source's settings, during a crawl."""

    root: str
    pages: Mapping[str, Page]
    lists_everything: bool = False
    excluded: frozenset[str] = frozenset()
    unlisted: str | None = None  # prefix of the part of the list that cannot be read
    most: int | None = None  # maximum number of documents

    @property
    def settings(self) -> tuple[frozenset[str], int | None]:
        return self.excluded, self.most

    def lists(self, url: str) -> bool:
        page = self.pages.get(url)
        return page is not None and not page.gone and url not in self.excluded and not self.cannot_list(url)

    def cannot_list(self, url: str) -> bool:
        return self.unlisted is not None and url.startswith(self.unlisted)


@dataclass(eq=False, kw_only=True)
class Version:
    document: int
    url: str
    content: str
    born: int
    depth: int
    links: tuple[str, ...]
    tag: str | None
    raw: bytes
    signature: str
    died: int | None = None


@dataclass(kw_only=True)
class Document:
    last: Version  # the current or last version
    lifecycle: str = "active"
    since: datetime | None = None
    missed: int = 0
    retries: int = 0


@dataclass(kw_only=True)
class Entry:
    """The result of a crawl for one URL."""

    outcome: str
    held: Version | None
    reached: bool = True
    page: Page | None = None  # the fetched page
    content: str | None = None  # the content extracted by the reader
    links: tuple[str, ...] = ()  # followed links
    to: str | None = None  # a permanent redirect
    by_settings: bool = False

    @property
    def brings(self) -> bool:
        """Return whether it makes a version: new, changed, or read again."""
        return self.content is not None and (self.held is None or self.held.content != self.content)


@dataclass(kw_only=True)
class Generation:
    number: int
    base: int | None
    state: str
    settings: tuple[frozenset[str], int | None] = (frozenset(), None)
    shows: dict[str, Version] = field(default_factory=dict)
    documents: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    partial: str | None = None
    changed: bool = False


@dataclass(kw_only=True)
class Crawl:
    """A running or held crawl."""

    number: int
    base: int | None
    mode: str
    world: World
    signature: str
    entries: dict[str, Entry] = field(default_factory=dict)
    depths: Mapping[str, int] = field(default_factory=dict)
    kept_out: frozenset[str] = frozenset()

    @property
    def sweeps(self) -> bool:
        return self.mode != "failed" and not self.kept_out and self.world.unlisted is None


@dataclass(kw_only=True)
class Settled:
    """The effect of activating a crawl."""

    fates: dict[int, Document | None] = field(default_factory=dict)  # None: unchanged
    ended: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    owners: dict[str, int | None] = field(default_factory=dict)  # new URL -> its document; None: a new one
    labels: dict[str, str] = field(default_factory=dict)  # outcomes in the ledger
    moves: int = 0  # of documents that the base shows
    shown: int = 0


# Crawling --------------------------------------------------------------------------------------------------------


def visit(world: World, url: str, held: Version | None, *, signature: str, full: bool, reached: bool) -> Entry:
    page = world.pages.get(url)
    if page is None or page.gone:
        return Entry(outcome="gone" if held else "dead_link", held=held, reached=reached)
    if url in world.excluded:
        return Entry(outcome="skipped", held=held, reached=reached, by_settings=True)
    if page.redirect:
        return Entry(outcome="moved" if held else "skipped", held=held, reached=reached, to=page.redirect)
    if page.error:
        return Entry(outcome="failed", held=held, reached=reached, links=held.links if held else ())
    if page.refused:
        return Entry(outcome="skipped", held=held, reached=reached)
    if held and not full and held.signature == signature and page.tag and page.tag == held.tag:
        return Entry(outcome="unchanged", held=held, reached=reached, links=held.links)
    content = read(page.text, signature)
    outcome = "new" if held is None else "unchanged" if held.content == content or held.raw == page.body else "changed"
    return Entry(outcome=outcome, held=held, reached=reached, page=page, content=content, links=page.links)


def visit_all(
    world: World,
    base: Mapping[str, Version],
    *,
    mode: str,
    signature: str,
    repairs: Iterable[str] = (),
    kept_out: frozenset[str] = frozenset(),
) -> dict[str, Entry]:
    """Return the result of a crawl for every URL it reaches. ``repairs``: the URLs that a repair visits."""
    entries: dict[str, Entry] = {}

    def look(start: Iterable[str], *, reached: bool, follow: bool) -> None:
        waiting = list(start)
        while waiting:
            url = waiting.pop()
            if url in entries:
                continue
            held = base.get(url)
            if url in kept_out:
                entries[url] = Entry(outcome="skipped", held=held, reached=reached, by_settings=True)
                continue
            entry = visit(world, url, held, signature=signature, full=mode == "full", reached=reached)
            entries[url] = entry
            waiting += [entry.to] if entry.to else []
            waiting += [link for link in entry.links if follow and link not in world.excluded]

    if mode == "failed":
        look(repairs, reached=True, follow=False)
    elif world.lists_everything:
        for url, page in world.pages.items():
            held = base.get(url)
            same = held and page.tag and held.tag == page.tag and held.signature == signature and mode != "full"
            if world.lists(url) and same and url not in kept_out:
                entries[url] = Entry(outcome="unchanged", held=held)
        look((url for url in world.pages if world.lists(url)), reached=True, follow=False)
        for url in base.keys() - entries.keys():
            excluded = url in world.excluded
            outcome = "skipped" if excluded else "failed" if world.cannot_list(url) else "gone"
            entries[url] = Entry(outcome=outcome, held=base[url], by_settings=excluded)
    else:
        look([world.root], reached=True, follow=True)
        while failed := redirects_that_fail(entries, base, kept_out):
            for url in failed:
                entries[url].links = base[url].links
            look(
                [link for url in failed for link in base[url].links if link not in world.excluded],
                reached=True,
                follow=True,
            )
        look(sorted(base), reached=False, follow=False)
    return entries


def redirects_that_fail(
    entries: Mapping[str, Entry], base: Mapping[str, Version], kept_out: frozenset[str]
) -> list[str]:
    """Return the documents whose redirects end at what fails, and that have not handed on their stored links yet."""

    def fails(end: str | None) -> bool:
        return end is None or end in kept_out or (entries[end].outcome == "failed" and entries[end].held is None)

    redirected = [url for url, entry in entries.items() if entry.to and url in base and base[url].links != entry.links]
    return [url for url in redirected if fails(end_of_redirects(url, entries))]


def end_of_redirects(url: str, entries: Mapping[str, Entry]) -> str | None:
    """Follow redirects to their end; None if they are circular."""
    passed = []
    while to := entries[url].to:
        passed.append(url)
        if to in passed:
            return None
        url = to
    return url


# A source ------------------------------------------------------------------------------------------------------------


class ReferenceModel:
    """One source: its expected state after all events so far."""

    def __init__(self) -> None:
        self.generations: dict[int, Generation] = {}
        self.documents: dict[int, Document] = {}
        self.active: int | None = None
        self.ledger: dict[str, str] = {}
        self.is_repaired = False  # what failed in the ledger has been read since
        self.held: Crawl | None = None
        self._next_number = 1
        self._next_document = 1

    def shows(self, number: int | None) -> dict[str, Version]:
        return self.generations[number].shows if number else {}

    # A crawl

    @property
    def has_nothing_to_repair(self) -> bool:
        return self.active is not None and (self.is_repaired or "failed" not in self.ledger.values())

    def begin(self, world: World, *, mode: str, signature: str) -> Crawl:
        """Start a crawl: abandon the held generation and take the next number."""
        self._abandon_held()
        if self.active is None and mode == "failed":
            mode = "refresh"
        crawl = Crawl(number=self._next_number, base=self.active, mode=mode, world=world, signature=signature)
        self._next_number += 1
        self.generations[crawl.number] = Generation(
            number=crawl.number, base=crawl.base, state="building", settings=world.settings
        )
        return crawl

    def give_up(self, crawl: Crawl) -> None:
        self.generations[crawl.number].state = "abandoned"

    def finish(
        self, crawl: Crawl, *, depths: Mapping[str, int], kept_out: frozenset[str], now: datetime, rules: LifecycleRules
    ) -> str:
        """End a crawl and return its result: ``failed``, ``held`` or ``active``."""
        base = self.shows(crawl.base)
        repairs = [url for url, label in self.ledger.items() if label == "failed"]
        crawl.depths, crawl.kept_out = depths, kept_out
        crawl.entries = visit_all(
            crawl.world, base, mode=crawl.mode, signature=crawl.signature, repairs=repairs, kept_out=kept_out
        )
        self._check_limit(crawl, base)
        if crawl.base is None and self._root_failed(crawl):
            self.give_up(crawl)
            return "failed"
        if crawl.mode != "failed":
            self.ledger = {url: entry.outcome for url, entry in crawl.entries.items()}
            self.is_repaired = False
        settled = self._settle(crawl, now, rules)
        if crawl.base is not None and self._brakes(settled, len(base), rules):
            self.generations[crawl.number].state = "held"
            self._describe(crawl, settled)
            self.held = crawl
            return "held"
        self._make_true(crawl, settled)
        if crawl.mode == "failed":
            self.is_repaired = "failed" not in settled.labels.values()
        return "active"

    def activate_held(self, now: datetime, rules: LifecycleRules) -> None:
        assert self.held, "there is one"
        crawl, self.held = self.held, None
        self._make_true(crawl, self._settle(crawl, now, rules))

    def discard_held(self) -> None:
        assert self.held, "there is one"
        self._abandon_held()

    def roll_back(self, target: int) -> None:
        """Make a new generation with the content of an earlier one: its documents are active, all others deleted."""
        self._abandon_held()
        number, before, again = self._next_number, self.shows(self.active), self.shows(target)
        self._next_number += 1
        made = Generation(number=number, base=self.active, state="active", settings=self.generations[target].settings)
        for url, version in again.items():
            stays = before.get(url) is version
            made.shows[url] = version if stays else self._copy(version, born=number)
        self._replace(made)
        for id, document in self.documents.items():
            shown = next((one for one in made.shows.values() if one.document == id), None)
            if shown and document.lifecycle != "active":
                self.documents[id] = Document(last=shown)
            elif shown:
                document.last = shown
            elif document.lifecycle != "deleted":
                self.documents[id] = Document(last=document.last, lifecycle="deleted")
        made.documents, made.tally = len(made.shows), self.generations[target].tally
        made.partial = self.generations[target].partial

    # Garbage collection

    def collect(self, *, keep: int, young: bool) -> int | None:
        """Collect garbage and return the oldest retained generation. ``young``: all are retained."""
        everything = self.generations.values()
        changed = sorted(one.number for one in everything if one.changed and one.state in ("active", "retired"))
        needed = changed[-keep:] if keep else []
        for one in everything:
            needed += [one.number] if one.state in ("active", "held", "building") else []
            needed += [one.base] if one.state in ("held", "building") and one.base else []
            needed += [one.number] if one.state == "retired" and young else []
        if not needed:
            return None
        oldest = min(needed)
        self.generations = {
            number: one
            for number, one in self.generations.items()
            if number >= oldest or one.state not in ("retired", "abandoned")
        }
        self.documents = {
            id: one
            for id, one in self.documents.items()
            if one.lifecycle != "deleted" or (one.last.died or oldest) > oldest
        }
        return oldest

    # Identity (section 4) and lifecycle (section 5)

    def _settle(self, crawl: Crawl, now: datetime, rules: LifecycleRules) -> Settled:
        base, entries, world = self.shows(crawl.base), crawl.entries, crawl.world
        shown = {version.document for version in base.values()}
        settings_changed = bool(crawl.base and self.generations[crawl.base].settings != world.settings)
        settled = Settled(labels={url: entry.outcome for url, entry in entries.items()})
        by_redirect: set[int] = set()  # decided by rule 2
        missing: set[int] = set()  # rule 3 may match these, though they are still shown

        def waits(id: int, reason: str, url: str | None = None) -> None:
            before = self.documents[id]
            again = before.lifecycle == "missing"
            since = before.since if again and before.since else now
            missed = before.missed + 1 if again else 0
            if missed >= rules.grace_crawls and now - since >= rules.grace_period:
                ends(id, lost=True)
                if url:
                    settled.labels[url] = "gone"  # the ledger says what the sweep did
                return
            settled.fates[id] = Document(last=before.last, lifecycle="missing", since=since, missed=missed)
            if reason == "not listed" and id in shown:
                settled.ended.add(id)
                settled.lost.add(id)
            if reason == "skipped":
                missing.add(id)

        def ends(id: int, *, lost: bool) -> None:
            settled.fates[id] = Document(last=self.documents[id].last, lifecycle="deleted", since=now)
            if id in shown:
                settled.ended.add(id)
                settled.lost |= {id} if lost else set()

        def see(url: str, outcome: str, *, by_settings: bool, reached: bool) -> None:
            id = base[url].document
            before = self.documents[id]
            if outcome == "failed":
                since = before.since if before.lifecycle == "error" else now
                settled.fates[id] = Document(
                    last=before.last, lifecycle="error", since=since, retries=before.retries + 1
                )
            elif outcome == "gone" and world.lists_everything:
                waits(id, "not listed")
            elif outcome == "gone":
                ends(id, lost=True)
            elif outcome == "skipped" and by_settings and settings_changed:
                ends(id, lost=False)
            elif outcome == "skipped":
                waits(id, "skipped", url)
            elif crawl.sweeps and not reached:
                waits(id, "not reached", url)
            elif reached or before.lifecycle != "missing":
                settled.fates[id] = Document(last=before.last)

        # 1. and 2. A URL with a response keeps its document; a redirected document is at the end of its redirects.
        moving: defaultdict[str, list[str]] = defaultdict(list)
        for url in base:
            if (entry := entries.get(url)) is None:
                continue  # not visited by a repair
            outcome, by_settings = entry.outcome, entry.by_settings
            if entry.to:
                end = end_of_redirects(url, entries)
                there = entries[end] if end else None
                if there and end and there.outcome == "new":
                    moving[end].append(url)
                    continue
                if there is None or end in crawl.kept_out:
                    outcome = "failed"
                elif there.held and there.outcome != "gone":
                    outcome = "gone"
                    by_redirect.add(base[url].document)
                else:
                    outcome, by_settings = there.outcome, there.by_settings
                    outcome = "gone" if outcome == "dead_link" else outcome
                settled.labels[url] = outcome
            see(url, outcome, by_settings=by_settings, reached=entry.reached)
        for end, urls in moving.items():
            first, *others = sorted(urls, key=lambda url: (crawl.depths[url], url))
            self._adopt(settled, base[first].document, end, base)
            for url in others:
                by_redirect.add(base[url].document)
                settled.labels[url] = "gone"
                see(url, "gone", by_settings=False, reached=True)
        hidden = [id for id, one in self.documents.items() if one.lifecycle in ("missing", "deleted")]
        hidden = [id for id in hidden if id not in shown]
        if crawl.sweeps:
            for id in hidden:
                if self.documents[id].lifecycle == "missing":
                    waits(id, "not listed")

        # 3. One to one by content: this crawl's lost, then the missing, then the deleted.
        tiers = [
            settled.lost - by_redirect,
            (missing | {id for id in hidden if self.documents[id].lifecycle == "missing"}) - by_redirect,
            {id for id in hidden if self.documents[id].lifecycle == "deleted"},
        ]
        brought: defaultdict[str, list[str]] = defaultdict(list)
        for url, entry in entries.items():
            if entry.outcome == "new" and url not in settled.owners:
                brought[entry.content or ""].append(url)
        for content, urls in brought.items():
            alike = [[id for id in tier if self.documents[id].last.content == content] for tier in tiers]
            best = next((ids for ids in alike if ids), [])
            if len(urls) == 1 and len(best) == 1 and len(content) >= TINY:
                self._adopt(settled, best[0], urls[0], base)

        # 4. and 5. Back where it was, or new.
        taken = set(settled.owners.values())
        for url, entry in entries.items():
            if entry.outcome == "new" and url not in settled.owners:
                lived = [id for id in hidden if self.documents[id].last.url == url and id not in taken]
                if lived:
                    self._adopt(settled, max(lived, key=lambda id: self.documents[id].last.born), url, base)
                else:
                    settled.owners[url] = None
        settled.shown = len(base) - len(settled.ended) + len(settled.owners) - settled.moves
        return settled

    def _adopt(self, settled: Settled, id: int, url: str, base: Mapping[str, Version]) -> None:
        """Match new content at this URL with an existing document."""
        last = self.documents[id].last
        settled.owners[url] = id
        settled.fates[id] = Document(last=last)
        settled.ended.discard(id)
        settled.lost.discard(id)
        settled.labels[url] = "new" if last.url == url else "moved"
        if base.get(last.url) is last:
            settled.labels[last.url] = "moved"
            settled.moves += 1

    def _brakes(self, settled: Settled, shown: int, rules: LifecycleRules) -> bool:
        failed = sum(fate is not None and fate.lifecycle == "error" for fate in settled.fates.values())
        return any(
            count > 0 and (count >= shown or (count > rules.brake_share * shown and count >= rules.brake_documents))
            for count in (len(settled.lost), failed)
        )

    def _describe(self, crawl: Crawl, settled: Settled) -> None:
        made = self.generations[crawl.number]
        made.documents = settled.shown
        made.tally = Counter(settled.labels.values())
        made.tally["moved"] -= settled.moves  # a move counts once, not at both of its ends
        inherited = crawl.mode == "failed" and crawl.base and self.generations[crawl.base].partial == "limit"
        errors = made.tally["failed"] or (crawl.world.unlisted and crawl.mode != "failed")
        made.partial = "limit" if crawl.kept_out or inherited else "errors" if errors else None

    def _make_true(self, crawl: Crawl, settled: Settled) -> None:
        self._describe(crawl, settled)
        made, base = self.generations[crawl.number], self.shows(crawl.base)
        gone = settled.ended | {id for id in settled.owners.values() if id}
        made.shows = {url: version for url, version in base.items() if version.document not in gone}
        for url, entry in crawl.entries.items():
            if entry.held and entry.page and not entry.brings:
                entry.held.links, entry.held.tag = entry.page.links, entry.page.tag
                entry.held.raw, entry.held.signature = entry.page.body, crawl.signature
            elif entry.held and entry.brings and url in made.shows:
                made.shows[url] = self._version(crawl, url, entry, entry.held.document)
        for url, owner in settled.owners.items():
            made.shows[url] = self._version(crawl, url, crawl.entries[url], owner or self._next_document)
            if owner is None:
                self.documents[self._next_document] = Document(last=made.shows[url])
                self._next_document += 1
        for id, fate in settled.fates.items():
            self.documents[id] = fate or self.documents[id]
        for version in made.shows.values():
            self.documents[version.document].last = version
        if crawl.mode == "failed" and crawl.base:
            made.settings = self.generations[crawl.base].settings
        else:
            self.ledger = settled.labels
        self._replace(made)

    def _replace(self, made: Generation) -> None:
        """Activate the new generation: versions of the base that it does not show end."""
        before = self.shows(self.active)
        for url, version in before.items():
            if made.shows.get(url) is not version:
                version.died = made.number
        made.changed = self.active is None or made.shows != before
        if self.active:
            self.generations[self.active].state = "retired"
        made.state, self.active = "active", made.number
        self.generations[made.number] = made

    def _version(self, crawl: Crawl, url: str, entry: Entry, document: int) -> Version:
        assert entry.page, "only what was fetched makes a version"
        return Version(
            document=document,
            url=url,
            content=entry.content or "",
            born=crawl.number,
            depth=crawl.depths[url],
            links=entry.page.links,
            tag=entry.page.tag,
            raw=entry.page.body,
            signature=crawl.signature,
        )

    def _copy(self, version: Version, *, born: int) -> Version:
        return Version(**{**vars(version), "born": born, "died": None})

    def _abandon_held(self) -> None:
        if self.held:
            self.generations[self.held.number].state = "abandoned"
            self.held = None

    def _root_failed(self, crawl: Crawl) -> bool:
        if crawl.world.lists_everything:
            return False
        end = end_of_redirects(crawl.world.root, crawl.entries)
        return end is None or crawl.entries[end].outcome != "new"

    def _check_limit(self, crawl: Crawl, base: Mapping[str, Version]) -> None:
        """Check that a limit keeps out new documents beyond it, and known ones only if it was lowered."""
        if crawl.world.most is None:
            assert not crawl.kept_out, "without a limit nothing is kept out"
            return
        ends = {entry.to for entry in crawl.entries.values() if entry.held}
        new = [url for url, entry in crawl.entries.items() if entry.outcome == "new"]
        admitted = [url for url in new if url not in ends]
        capacity = max(0, crawl.world.most - len(base))
        assert len(admitted) <= capacity, f"{len(admitted)} new documents were admitted, the limit allows {capacity}"
        root = crawl.world.root
        order = sorted(base, key=lambda url: (url != root, base[url].depth, url))
        if crawl.world.lists_everything:
            order = sorted(base)
        over = {url for url in order[crawl.world.most :] if not crawl.world.lists_everything or crawl.world.lists(url)}
        expected = over if crawl.mode != "failed" else set()
        assert crawl.kept_out & base.keys() == expected, "a lowered limit keeps the documents closest to the root"
        assert not crawl.kept_out or len(new) >= capacity, f"{crawl.kept_out} was kept out below the limit"
