"""The decision about one visited URL, case by case."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kept.crawl.decide import (
    MAX_ATTEMPTS,
    MAX_RETRY_AFTER,
    NewContent,
    NotKept,
    RetryLater,
    Unchanged,
    backoff_delay,
    decide,
    is_conditional,
    needs_no_visit,
    needs_reading,
)
from kept.model.document import Content, ParsedPage, Section, Unreadable, Validators, Version
from kept.model.frontier import (
    Fetched,
    FrontierEntry,
    Gone,
    ListedUrl,
    MetadataUpdate,
    NotModified,
    Outcome,
    Redirected,
    Refused,
    StoredPage,
    Unreachable,
    Visit,
)
from kept.model.robots_directives import RobotsDirectives

URL = "https://docs.test/page"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TODAY = "reader 2"
BEFORE = "reader 1"


def stored(*, signature: str = TODAY, etag: str | None = '"1"', links: tuple[str, ...] = ("old link",)) -> Version:
    return Version(
        id=1,
        document_id="document",
        born=1,
        died=None,
        url=URL,
        content_hash="content",
        content_type="text/html",
        validators=Validators(etag=etag),
        raw_hash="bytes",
        signature=signature,
        depth=1,
        links=links,
        fetched_at=NOW - timedelta(days=1),
    )


def entry(version: Version | None, *, attempts: int = 0) -> FrontierEntry:
    return FrontierEntry(url=URL, depth=1, attempts=attempts, reached=True, base_version=version)


def page(hash: str, links: tuple[str, ...] = ("old link",)) -> ParsedPage:
    section = Section(position=0, parent=None, level=0, heading="", anchor=None, text="a")
    return ParsedPage(content=Content(hash=hash, title="", markdown="a", sections=(section,)), links=links)


def fetched(etag: str | None = '"1"') -> Fetched:
    return Fetched(body=b"", content_type="text/html", validators=Validators(etag=etag), status=200)


def decided(
    version: Version | None, visit: Visit, read: ParsedPage | Unreadable | None = None, raw_hash: str = "bytes"
) -> NewContent | Unchanged | NotKept | RetryLater:
    conditional = is_conditional(entry(version), TODAY, full=False)
    return decide(entry(version), visit, read, raw_hash=raw_hash, signature=TODAY, now=NOW, conditional=conditional)


# 304 and 200


def test_not_modified_is_unchanged_and_the_stored_links_are_followed() -> None:
    assert decided(stored(), NotModified(status=304)) == Unchanged(links=("old link",), status=304)


@pytest.mark.parametrize(
    "version",
    [None, stored(signature=BEFORE), stored(etag=None)],
    ids=["nothing is stored", "read by another reader", "no validators"],
)
def test_not_modified_is_a_failure_after_an_unconditional_request(version: Version | None) -> None:
    decision = decided(version, NotModified(status=304))
    assert isinstance(decision, NotKept)
    assert decision.outcome is Outcome.FAILED
    assert decision.links == (version.links if version else ())


def test_not_modified_is_a_failure_in_a_full_crawl() -> None:
    answer = NotModified(status=304)
    decision = decide(entry(stored()), answer, None, raw_hash="", signature=TODAY, now=NOW, conditional=False)
    assert isinstance(decision, NotKept)
    assert decision.outcome is Outcome.FAILED


def test_a_page_that_is_not_stored_is_new() -> None:
    decision = decided(None, fetched(), page("content"))
    assert isinstance(decision, NewContent)
    assert (decision.outcome, decision.read_again, decision.raw_hash) == (Outcome.NEW, False, "bytes")


def test_other_content_is_a_change_and_its_own_links_are_followed() -> None:
    decision = decided(stored(), fetched(), page("other", ("new link",)), "other bytes")
    assert isinstance(decision, NewContent)
    assert (decision.outcome, decision.read_again, decision.links) == (Outcome.CHANGED, False, ("new link",))


@pytest.mark.parametrize(
    ("version", "visit", "read", "raw_hash", "is_updated"),
    [
        (stored(), fetched(), None, "bytes", False),
        (stored(), fetched('"2"'), None, "bytes", True),
        (stored(), fetched(), page("content"), "other bytes", True),
        (stored(), fetched(), page("content", ("new link",)), "other bytes", True),
        (stored(signature=BEFORE), fetched(), page("content"), "bytes", True),
    ],
    ids=["all as it was", "other validators", "other bytes", "other links", "another reader, which sees the same"],
)
def test_the_same_content_is_unchanged_and_has_only_the_metadata_that_differs(
    version: Version, visit: Fetched, read: ParsedPage | None, raw_hash: str, is_updated: bool
) -> None:
    links = read.links if read else version.links
    update = MetadataUpdate(validators=visit.validators, raw_hash=raw_hash, signature=TODAY, links=links)
    assert decided(version, visit, read, raw_hash) == Unchanged(
        links=links, metadata_update=update if is_updated else None, status=200
    )


def test_the_same_bytes_read_into_other_content_are_read_again_not_changed() -> None:
    decision = decided(stored(signature=BEFORE), fetched(), page("other"))
    assert isinstance(decision, NewContent)
    assert (decision.outcome, decision.read_again) == (Outcome.UNCHANGED, True)


def test_other_bytes_under_another_reader_are_a_change() -> None:
    decision = decided(stored(signature=BEFORE), fetched(), page("other"), "other bytes")
    assert isinstance(decision, NewContent)
    assert (decision.outcome, decision.read_again) == (Outcome.CHANGED, False)


# Everything else


@pytest.mark.parametrize("version", [None, stored()], ids=["unknown", "a document"])
@pytest.mark.parametrize(
    ("visit", "read", "outcome", "by_settings"),
    [
        (Gone(reason="404", status=404), None, Outcome.GONE, False),
        (Refused(reason="robots.txt"), None, Outcome.SKIPPED, False),
        (Refused(reason="out of scope", by_settings=True), None, Outcome.SKIPPED, True),
        (fetched(), Unreadable(reason="no text in it"), Outcome.SKIPPED, False),
        (Unreachable(reason="403", is_retryable=False), None, Outcome.FAILED, False),
    ],
    ids=["gone", "refused", "left out by the settings", "unreadable", "failed"],
)
def test_a_visit_without_content_has_an_outcome_and_a_reason(
    version: Version | None, visit: Visit, read: Unreadable | None, outcome: Outcome, by_settings: bool
) -> None:
    decision = decided(version, visit, read)
    assert isinstance(decision, NotKept)
    if outcome is Outcome.GONE and version is None:
        outcome = Outcome.DEAD_LINK
    assert (decision.outcome, decision.by_settings, decision.redirect_to) == (outcome, by_settings, None)
    assert decision.reason


def test_a_reader_that_fails_loses_no_document() -> None:
    broken = Unreadable(reason="its reader crashed", is_reader_failure=True)
    for version, outcome in [(stored(), Outcome.FAILED), (None, Outcome.SKIPPED)]:
        decision = decided(version, fetched(), broken)
        assert isinstance(decision, NotKept)
        assert decision.outcome is outcome


def test_the_stored_links_are_followed_only_after_a_failure() -> None:
    for visit, links in [
        (Unreachable(reason="500", is_retryable=False), ("old link",)),
        (Gone(reason="404"), ()),
        (Refused(reason="robots.txt"), ()),
        (Redirected(to="https://docs.test/elsewhere"), ()),
    ]:
        decision = decided(stored(), visit)
        assert isinstance(decision, NotKept)
        assert decision.links == links, visit


@pytest.mark.parametrize(("version", "outcome"), [(stored(), Outcome.MOVED), (None, Outcome.SKIPPED)])
def test_a_document_moves_by_a_permanent_redirect_and_any_other_url_is_skipped(
    version: Version | None, outcome: Outcome
) -> None:
    decision = decided(version, Redirected(to="https://docs.test/new", status=301))
    assert isinstance(decision, NotKept)
    assert (decision.outcome, decision.redirect_to) == (outcome, "https://docs.test/new")


@pytest.mark.parametrize(
    ("attempts", "wait", "is_retried"),
    [
        (0, None, True),
        (MAX_ATTEMPTS - 2, None, True),
        (MAX_ATTEMPTS - 1, None, False),
        (0, timedelta(seconds=30), True),
        (0, MAX_RETRY_AFTER, True),
        (0, MAX_RETRY_AFTER + timedelta(seconds=1), False),
        (MAX_ATTEMPTS - 1, timedelta(seconds=30), False),
    ],
)
def test_a_page_that_cannot_be_read_now_is_retried_a_few_times_and_not_too_late(
    attempts: int, wait: timedelta | None, is_retried: bool
) -> None:
    visit = Unreachable(reason="503", status=503, retry_after=wait)
    decision = decide(
        entry(stored(), attempts=attempts), visit, None, raw_hash="", signature=TODAY, now=NOW, conditional=True
    )
    if is_retried:
        assert isinstance(decision, RetryLater)
        assert decision.retry_at > NOW
        assert wait is None or decision.retry_at == NOW + wait
    else:
        assert isinstance(decision, NotKept)
        assert decision.outcome is Outcome.FAILED


def test_each_delay_is_about_twice_as_long() -> None:
    for attempts in range(MAX_ATTEMPTS):
        assert 0.75 * 2**attempts <= backoff_delay(attempts).total_seconds() <= 1.25 * 2**attempts


# Conditional requests, and what needs no visit or no reading


@pytest.mark.parametrize(
    ("version", "full", "conditional"),
    [
        (stored(), False, True),
        (stored(), True, False),
        (None, False, False),
        (stored(etag=None), False, False),
        (stored(signature=BEFORE), False, False),
    ],
    ids=["stored and read by today's reader", "a full crawl", "not stored", "no validators", "read by another reader"],
)
def test_a_request_is_conditional_only_when_the_answer_can_be_trusted(
    version: Version | None, full: bool, conditional: bool
) -> None:
    assert is_conditional(entry(version), TODAY, full=full) is conditional


@pytest.mark.parametrize(
    ("raw_hash", "version", "is_needed"),
    [
        ("bytes", stored(), False),
        ("other bytes", stored(), True),
        ("bytes", stored(signature=BEFORE), True),
        ("bytes", None, True),
    ],
)
def test_only_the_same_bytes_under_the_same_reader_need_no_reading(
    raw_hash: str, version: Version | None, is_needed: bool
) -> None:
    assert needs_reading(entry(version), raw_hash, TODAY) is is_needed


@pytest.mark.parametrize(
    ("listed", "signature", "is_unchanged"),
    [
        ("1", TODAY, True),
        ("2", TODAY, False),
        (None, TODAY, False),
        ("1", BEFORE, False),
    ],
    ids=["as it was", "another ETag", "none", "another reader"],
)
def test_a_listed_file_needs_no_visit_when_its_etag_is_the_stored_one(
    listed: str | None, signature: str, is_unchanged: bool
) -> None:
    file = ListedUrl(url=URL, etag=listed)
    known = StoredPage(
        url=URL,
        version_id=1,
        document_id="document",
        validators=Validators(etag="1"),
        signature=signature,
    )
    assert needs_no_visit(file, known, TODAY) is is_unchanged


# Directives of the page itself


def with_robots(noindex: bool = False, nofollow: bool = False, *, obeyed: bool = True) -> Fetched:
    return replace(
        fetched(), robots_directives=RobotsDirectives(noindex=noindex, nofollow=nofollow) if obeyed else None
    )


@pytest.mark.parametrize("version", [None, stored()], ids=["unknown", "a document"])
@pytest.mark.parametrize("in_header", [True, False])
@pytest.mark.parametrize("nofollow", [True, False])
def test_a_noindex_page_is_skipped_and_its_links_are_followed_unless_it_is_nofollow(
    version: Version | None, in_header: bool, nofollow: bool
) -> None:
    robots = RobotsDirectives(noindex=True, nofollow=nofollow)
    visit = with_robots(True, nofollow) if in_header else fetched()
    read = (
        page("other", ("new link",)) if in_header else page("other", ("new link",))._replace(robots_directives=robots)
    )
    decision = decided(version, visit, read, "other bytes")
    assert isinstance(decision, NotKept)
    assert (decision.outcome, decision.reason) == (Outcome.SKIPPED, "the page asks not to be kept")
    assert decision.links == (() if nofollow else ("new link",))


def test_a_page_with_a_noindex_header_is_skipped_even_if_its_bytes_are_stored() -> None:
    decision = decided(stored(), with_robots(noindex=True), None)
    assert isinstance(decision, NotKept)
    assert decision.links == ("old link",)


def test_links_that_are_not_to_be_followed_are_not_stored_either() -> None:
    kept = decided(None, with_robots(nofollow=True), page("content"))
    assert isinstance(kept, NewContent)
    assert kept.links == kept.page.links == ()
    unchanged = decided(stored(), with_robots(nofollow=True), None)
    assert isinstance(unchanged, Unchanged)
    assert unchanged.metadata_update is not None
    assert unchanged.links == unchanged.metadata_update.links == ()


def test_where_directives_are_ignored_none_counts() -> None:
    read = page("content")._replace(robots_directives=RobotsDirectives(noindex=True, nofollow=True))
    decision = decided(None, with_robots(obeyed=False), read)
    assert isinstance(decision, NewContent)
    assert decision.links == ("old link",)


@pytest.mark.parametrize(("version", "outcome"), [(stored(), Outcome.MOVED), (None, Outcome.SKIPPED)])
def test_a_page_that_only_sends_its_reader_elsewhere_is_a_redirect(version: Version | None, outcome: Outcome) -> None:
    to = "https://docs.test/new"
    decision = decided(version, fetched(), page("other")._replace(moved_to=to), "other bytes")
    assert isinstance(decision, NotKept)
    assert (decision.outcome, decision.redirect_to) == (outcome, to)
    assert decision.reason == f"sends its reader to {to}"
    assert isinstance(decided(None, fetched(), page("other")._replace(moved_to=URL)), NewContent)


def test_a_page_without_text_is_reported_and_its_links_are_followed() -> None:
    frames = page("frames", links=("https://docs.test/toc",))
    frames = frames._replace(content=Content(hash="frames", title="", markdown="", sections=()))
    decision = decided(None, fetched(), frames)
    assert isinstance(decision, NotKept)
    assert (decision.outcome, decision.reason) == (Outcome.SKIPPED, "it has no text to read")
    assert decision.links == ("https://docs.test/toc",)


def test_a_canonical_url_is_stored_if_it_is_another() -> None:
    other = "https://docs.test/known-by"
    for canonical, expected in ((other, other), (URL, None)):
        read = page("content")._replace(canonical=canonical)
        kept = decided(None, fetched(), read)
        assert isinstance(kept, NewContent)
        assert kept.page.canonical == expected
    unchanged = decided(stored(), fetched(), page("content")._replace(canonical=other), "other bytes")
    assert isinstance(unchanged, Unchanged)
    assert unchanged.metadata_update is not None
    assert unchanged.metadata_update.canonical == other
