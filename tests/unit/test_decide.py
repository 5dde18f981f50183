"""What a crawl makes of one visit: the table of the walk, case by case."""

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
from kept.extract.sections import Unreadable
from kept.model.document import Content, ParsedPage, Validators, Version
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


def held(*, signature: str = TODAY, etag: str | None = '"1"', links: tuple[str, ...] = ("old link",)) -> Version:
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


def reading(hash: str, links: tuple[str, ...] = ("old link",)) -> ParsedPage:
    return ParsedPage(content=Content(hash=hash, title="", markdown="", sections=()), links=links)


def fetched(etag: str | None = '"1"') -> Fetched:
    return Fetched(body=b"", content_type="text/html", validators=Validators(etag=etag), status=200)


def decided(
    version: Version | None, visit: Visit, read: ParsedPage | Unreadable | None = None, raw_hash: str = "bytes"
) -> NewContent | Unchanged | NotKept | RetryLater:
    asked = is_conditional(entry(version), TODAY, full=False)
    return decide(entry(version), visit, read, raw_hash=raw_hash, signature=TODAY, now=NOW, conditional=asked)


# 304 and 200


def test_not_modified_is_unchanged_and_hands_on_the_stored_links() -> None:
    assert decided(held(), NotModified(status=304)) == Unchanged(links=("old link",), status=304)


@pytest.mark.parametrize(
    "version",
    [None, held(signature=BEFORE), held(etag=None)],
    ids=["nothing is held", "read by another reader", "no validators"],
)
def test_not_modified_is_a_failure_where_nobody_asked(version: Version | None) -> None:
    decision = decided(version, NotModified(status=304))
    assert isinstance(decision, NotKept)
    assert decision.outcome is Outcome.FAILED
    assert decision.links == (version.links if version else ())


def test_not_modified_is_a_failure_where_everything_was_to_be_read_anew() -> None:
    answer = NotModified(status=304)
    decision = decide(entry(held()), answer, None, raw_hash="", signature=TODAY, now=NOW, conditional=False)
    assert isinstance(decision, NotKept)
    assert decision.outcome is Outcome.FAILED


def test_a_page_that_is_not_held_is_new() -> None:
    decision = decided(None, fetched(), reading("content"))
    assert isinstance(decision, NewContent)
    assert (decision.outcome, decision.read_again, decision.raw_hash) == (Outcome.NEW, False, "bytes")


def test_other_content_is_a_change_and_its_own_links_are_followed() -> None:
    decision = decided(held(), fetched(), reading("other", ("new link",)), "other bytes")
    assert isinstance(decision, NewContent)
    assert (decision.outcome, decision.read_again, decision.links) == (Outcome.CHANGED, False, ("new link",))


@pytest.mark.parametrize(
    ("version", "visit", "read", "raw_hash", "renews"),
    [
        (held(), fetched(), None, "bytes", False),
        (held(), fetched('"2"'), None, "bytes", True),
        (held(), fetched(), reading("content"), "other bytes", True),
        (held(), fetched(), reading("content", ("new link",)), "other bytes", True),
        (held(signature=BEFORE), fetched(), reading("content"), "bytes", True),
    ],
    ids=["all as it was", "other validators", "other bytes", "other links", "another reader, which sees the same"],
)
def test_the_same_content_is_unchanged_and_carries_only_what_is_fresh(
    version: Version, visit: Fetched, read: ParsedPage | None, raw_hash: str, renews: bool
) -> None:
    links = read.links if read else version.links
    fresh = MetadataUpdate(validators=visit.validators, raw_hash=raw_hash, signature=TODAY, links=links)
    assert decided(version, visit, read, raw_hash) == Unchanged(
        links=links, metadata_update=fresh if renews else None, status=200
    )


def test_the_same_bytes_read_into_other_content_are_read_again_not_changed() -> None:
    decision = decided(held(signature=BEFORE), fetched(), reading("other"))
    assert isinstance(decision, NewContent)
    assert (decision.outcome, decision.read_again) == (Outcome.UNCHANGED, True)


def test_other_bytes_under_another_reader_are_a_change() -> None:
    decision = decided(held(signature=BEFORE), fetched(), reading("other"), "other bytes")
    assert isinstance(decision, NewContent)
    assert (decision.outcome, decision.read_again) == (Outcome.CHANGED, False)


# Everything else


@pytest.mark.parametrize("version", [None, held()], ids=["unknown", "a document"])
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
def test_what_brings_no_content_ends_with_its_reason(
    version: Version | None, visit: Visit, read: Unreadable | None, outcome: Outcome, by_settings: bool
) -> None:
    decision = decided(version, visit, read)
    assert isinstance(decision, NotKept)
    assert (decision.outcome, decision.by_settings, decision.redirect_to) == (outcome, by_settings, None)
    assert decision.reason


def test_a_reader_that_breaks_down_loses_no_document() -> None:
    broken = Unreadable(reason="its reader crashed", is_reader_failure=True)
    for version, outcome in [(held(), Outcome.FAILED), (None, Outcome.SKIPPED)]:
        decision = decided(version, fetched(), broken)
        assert isinstance(decision, NotKept)
        assert decision.outcome is outcome


def test_only_what_failed_hands_on_its_stored_links() -> None:
    for visit, links in [
        (Unreachable(reason="500", is_retryable=False), ("old link",)),
        (Gone(reason="404"), ()),
        (Refused(reason="robots.txt"), ()),
        (Redirected(to="https://docs.test/elsewhere"), ()),
    ]:
        decision = decided(held(), visit)
        assert isinstance(decision, NotKept)
        assert decision.links == links, visit


@pytest.mark.parametrize(("version", "outcome"), [(held(), Outcome.MOVED), (None, Outcome.SKIPPED)])
def test_a_document_moves_by_a_permanent_redirect_and_any_other_url_is_skipped(
    version: Version | None, outcome: Outcome
) -> None:
    decision = decided(version, Redirected(to="https://docs.test/new", status=301))
    assert isinstance(decision, NotKept)
    assert (decision.outcome, decision.redirect_to) == (outcome, "https://docs.test/new")


@pytest.mark.parametrize(
    ("attempts", "wait", "again"),
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
def test_what_cannot_be_read_now_is_tried_again_a_few_times_and_not_too_late(
    attempts: int, wait: timedelta | None, again: bool
) -> None:
    visit = Unreachable(reason="503", status=503, retry_after=wait)
    decision = decide(
        entry(held(), attempts=attempts), visit, None, raw_hash="", signature=TODAY, now=NOW, conditional=True
    )
    if again:
        assert isinstance(decision, RetryLater)
        assert decision.retry_at > NOW
        assert wait is None or decision.retry_at == NOW + wait
    else:
        assert isinstance(decision, NotKept)
        assert decision.outcome is Outcome.FAILED


def test_each_wait_is_about_twice_as_long() -> None:
    for attempts in range(MAX_ATTEMPTS):
        assert 0.75 * 2**attempts <= backoff_delay(attempts).total_seconds() <= 1.25 * 2**attempts


# What is asked, and what need not be


@pytest.mark.parametrize(
    ("version", "full", "conditional"),
    [
        (held(), False, True),
        (held(), True, False),
        (None, False, False),
        (held(etag=None), False, False),
        (held(signature=BEFORE), False, False),
    ],
    ids=["held and read as today", "everything is asked for", "not held", "no validators", "read by another reader"],
)
def test_a_visit_is_conditional_only_when_the_answer_can_be_trusted(
    version: Version | None, full: bool, conditional: bool
) -> None:
    assert is_conditional(entry(version), TODAY, full=full) is conditional


@pytest.mark.parametrize(
    ("raw_hash", "version", "needed"),
    [
        ("bytes", held(), False),
        ("other bytes", held(), True),
        ("bytes", held(signature=BEFORE), True),
        ("bytes", None, True),
    ],
)
def test_only_the_same_bytes_under_the_same_reader_need_no_reading(
    raw_hash: str, version: Version | None, needed: bool
) -> None:
    assert needs_reading(entry(version), raw_hash, TODAY) is needed


@pytest.mark.parametrize(
    ("listed", "signature", "spared"),
    [
        ("1", TODAY, True),
        ("2", TODAY, False),
        (None, TODAY, False),
        ("1", BEFORE, False),
    ],
    ids=["as it was", "another ETag", "none", "another reader"],
)
def test_a_listed_file_is_spared_a_visit_when_its_etag_says_so(
    listed: str | None, signature: str, spared: bool
) -> None:
    file = ListedUrl(url=URL, etag=listed)
    known = StoredPage(
        url=URL,
        version_id=1,
        document_id="document",
        validators=Validators(etag="1"),
        signature=signature,
    )
    assert needs_no_visit(file, known, TODAY) is spared


# What a page says about itself


def asking(noindex: bool = False, nofollow: bool = False, *, heard: bool = True) -> Fetched:
    return replace(fetched(), robots_directives=RobotsDirectives(noindex=noindex, nofollow=nofollow) if heard else None)


@pytest.mark.parametrize("version", [None, held()], ids=["unknown", "a document"])
@pytest.mark.parametrize("in_header", [True, False])
@pytest.mark.parametrize("nofollow", [True, False])
def test_a_page_that_asks_not_to_be_kept_is_skipped_and_its_links_followed_unless_it_asks_not_to(
    version: Version | None, in_header: bool, nofollow: bool
) -> None:
    wishes = RobotsDirectives(noindex=True, nofollow=nofollow)
    visit = asking(True, nofollow) if in_header else fetched()
    read = (
        reading("other", ("new link",))
        if in_header
        else reading("other", ("new link",))._replace(robots_directives=wishes)
    )
    decision = decided(version, visit, read, "other bytes")
    assert isinstance(decision, NotKept)
    assert (decision.outcome, decision.reason) == (Outcome.SKIPPED, "the page asks not to be kept")
    assert decision.links == (() if nofollow else ("new link",))


def test_a_page_whose_header_asks_it_is_skipped_even_if_its_bytes_are_held() -> None:
    decision = decided(held(), asking(noindex=True), None)
    assert isinstance(decision, NotKept)
    assert decision.links == ("old link",)


def test_links_that_are_not_to_be_followed_are_not_remembered_either() -> None:
    kept = decided(None, asking(nofollow=True), reading("content"))
    assert isinstance(kept, NewContent)
    assert kept.links == kept.page.links == ()
    unchanged = decided(held(), asking(nofollow=True), None)
    assert isinstance(unchanged, Unchanged)
    assert unchanged.metadata_update is not None
    assert unchanged.links == unchanged.metadata_update.links == ()


def test_where_nobody_listens_no_wish_counts() -> None:
    read = reading("content")._replace(robots_directives=RobotsDirectives(noindex=True, nofollow=True))
    decision = decided(None, asking(heard=False), read)
    assert isinstance(decision, NewContent)
    assert decision.links == ("old link",)


@pytest.mark.parametrize(("version", "outcome"), [(held(), Outcome.MOVED), (None, Outcome.SKIPPED)])
def test_a_page_that_only_sends_its_reader_elsewhere_is_a_redirect(version: Version | None, outcome: Outcome) -> None:
    to = "https://docs.test/new"
    decision = decided(version, fetched(), reading("other")._replace(moved_to=to), "other bytes")
    assert isinstance(decision, NotKept)
    assert (decision.outcome, decision.redirect_to) == (outcome, to)
    assert decision.reason == f"sends its reader to {to}"
    assert isinstance(decided(None, fetched(), reading("other")._replace(moved_to=URL)), NewContent)


def test_a_canonical_url_is_remembered_if_it_is_another() -> None:
    other = "https://docs.test/known-by"
    for canonical, remembered in ((other, other), (URL, None)):
        read = reading("content")._replace(canonical=canonical)
        kept = decided(None, fetched(), read)
        assert isinstance(kept, NewContent)
        assert kept.page.canonical == remembered
    unchanged = decided(held(), fetched(), reading("content")._replace(canonical=other), "other bytes")
    assert isinstance(unchanged, Unchanged)
    assert unchanged.metadata_update is not None
    assert unchanged.metadata_update.canonical == other
