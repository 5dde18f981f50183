"""Webhooks: signed notifications of committed changes, retried until they are received, also after restarts."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from kept.crawl import activate, rollback
from kept.crawl.lifecycle import LifecycleRules
from kept.errors import SecretUnavailable
from kept.maintenance import webhooks
from kept.maintenance.webhooks import MAX_ATTEMPTS, DeliveryReport, OperatorWebhook, deliver_due
from kept.model.source import Authority, Source, SourceSettings
from kept.origins.web.outbound import WebhookClients
from kept.service import sources as service
from kept.store import notifications
from kept.store.database import Database
from tests.contract.databases import on_both_databases
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source

SECRET = "a shared secret"
PAGES = {ROOT: Page("the root", tuple(f"{ROOT}{number}" for number in range(6)))}
PAGES |= {f"{ROOT}{number}": Page(f"page {number}") for number in range(6)}


@dataclass
class Receiver:
    """A receiver on loopback, with the statuses it returns one after the other, then 204."""

    answers: list[int] = field(default_factory=list)
    requests: list[web.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    url: str = ""

    async def receive(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        self.bodies.append(await request.read())
        status = self.answers.pop(0) if self.answers else 204
        return web.Response(status=status, headers={"Location": "/elsewhere"} if status == 302 else None)

    @property
    def payloads(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]


@asynccontextmanager
async def open_receiver(*answers: int) -> AsyncIterator[Receiver]:
    receiver = Receiver(list(answers))
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.receive)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook?key=of+mine"
    try:
        yield receiver
    finally:
        await runner.cleanup()


async def deliver(
    db: Database, url: str = "", *, later: timedelta = timedelta(), secret: str = SECRET, allowed: str = ""
) -> DeliveryReport:
    """Run one delivery pass, some time from now, with a new client, like a process that has just started."""
    clients = WebhookClients(url, allowed)
    try:
        now = datetime.now(UTC) + later + timedelta(seconds=1)
        return await deliver_due(db, clients.send, OperatorWebhook(url=url, secret=secret), look_up=plain, now=now)
    finally:
        await clients.close()


def plain(value: str) -> str:
    if value.startswith("env:"):
        raise SecretUnavailable(f"The environment variable {value[4:]} is not set.")
    return value


async def untold(db: Database) -> list[notifications.Notification]:
    async with db.snapshot() as snapshot:
        return await notifications.list_due(snapshot, datetime.now(UTC) + timedelta(days=30), limit=100)


async def set_webhook(db: Database, url: str) -> Source:
    return await service.update_settings(db, "docs", lambda settings: replace(settings, webhook=url))


@on_both_databases
async def test_an_activation_is_told_with_what_it_brought_and_signed(db: Database) -> None:
    job = await crawl(db, await make_source(db), Site(PAGES))
    async with open_receiver() as receiver:
        assert await deliver(db, receiver.url) == DeliveryReport(delivered=1)
        assert await deliver(db, receiver.url, later=timedelta(days=1)) == DeliveryReport()
    [payload], [request] = receiver.payloads, receiver.requests
    assert (payload["event"], payload["source"], payload["generation"], payload["state"]) == (
        "activated",
        "docs",
        1,
        "active",
    )
    assert (payload["counts"]["new"], payload["documents"], payload["job"], payload["reason"]) == (7, 7, job.id, None)
    assert (request.method, request.path_qs) == ("POST", "/hook?key=of+mine")
    assert request.headers["Content-Type"] == "application/json"
    assert (request.headers["Kept-Event"], request.headers["Kept-Delivery"]) == ("activated", payload["id"])
    signed = f"{request.headers['Kept-Timestamp']}.".encode() + receiver.bodies[0]
    expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert request.headers["Kept-Signature"] == f"sha256={expected}"


@on_both_databases
async def test_holds_failures_rollbacks_and_decisions_are_delivered(db: Database) -> None:
    source = await make_source(db)
    failed = await crawl(db, source, Site({ROOT: Page(error="500 Internal Server Error")}))
    await crawl(db, source, Site(PAGES))
    await crawl(db, source, Site({ROOT: Page("the root")}))
    await activate.activate_held(db, source.id, LifecycleRules())
    await rollback.roll_back(db, source.id, 2)
    async with open_receiver() as receiver:
        await deliver(db, receiver.url)
    payloads = sorted(receiver.payloads, key=lambda one: one["id"])
    assert [(one["event"], one["generation"], one["state"]) for one in payloads] == [
        ("failed", 1, "abandoned"),
        ("activated", 2, "active"),
        ("held", 3, "held"),
        ("activated", 3, "active"),
        ("activated", 4, "active"),
    ]
    assert payloads[0]["job"] == failed.id
    assert "500 Internal Server Error" in payloads[0]["reason"]
    assert payloads[2]["reason"] == "6 of 7 documents would be lost"
    assert (payloads[4]["job"], payloads[4]["reason"], payloads[4]["documents"]) == (None, "rolled back to 2", 7)


@on_both_databases
async def test_a_generation_that_changed_nothing_is_no_news(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, Site(PAGES))
    assert len(await untold(db)) == 1
    await crawl(db, source, Site(PAGES))
    assert len(await untold(db)) == 1


def test_a_receiver_that_fails_twice_is_told_again_across_a_restart(database_url: str) -> None:
    async def before() -> None:
        async with database_at(database_url) as db, open_receiver(500, 503) as receiver:
            await crawl(db, await make_source(db), Site(PAGES))
            assert await deliver(db, receiver.url) == DeliveryReport(put_off=1)
            assert await deliver(db, receiver.url) == DeliveryReport(), "not yet"
            [waiting] = await untold(db)
            assert (waiting.attempts, waiting.error) == (1, "answered 500")
            assert await deliver(db, receiver.url, later=timedelta(seconds=15)) == DeliveryReport(put_off=1)

    async def after() -> None:
        async with database_at(database_url) as db, open_receiver() as receiver:
            assert await deliver(db, receiver.url, later=timedelta(seconds=20)) == DeliveryReport(), (
                "twice as long this time"
            )
            assert await deliver(db, receiver.url, later=timedelta(minutes=1)) == DeliveryReport(delivered=1)
            assert receiver.payloads[0]["event"] == "activated"
            assert await untold(db) == []

    asyncio.run(before())
    asyncio.run(after())


@on_both_databases
async def test_what_was_taken_and_never_answered_for_is_due_again(db: Database) -> None:
    await crawl(db, await make_source(db), Site(PAGES))
    [notice] = await untold(db)
    now = datetime.now(UTC) + timedelta(seconds=1)
    async with db.transaction() as tx:  # by a process that was killed
        [taken] = await notifications.claim_due(tx, now, until=now + webhooks.DELIVERY_LEASE, limit=10)
        assert (taken.id, taken.attempts) == (notice.id, 1)
        assert await notifications.claim_due(tx, now, until=now + webhooks.DELIVERY_LEASE, limit=10) == [], (
            "by one only"
        )
    async with open_receiver() as receiver:
        assert await deliver(db, receiver.url) == DeliveryReport()
        assert await deliver(db, receiver.url, later=timedelta(minutes=2)) == DeliveryReport(delivered=1)


def test_two_processes_at_once_tell_everything_once(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db, database_at(database_url) as other, open_receiver() as receiver:
            for number in range(6):
                source = await make_source(db, f"s{number}", root=f"https://s{number}.test/")
                await crawl(db, source, Site({source.root: Page("root")}, root=source.root))
            passes = await asyncio.gather(*(deliver(one, receiver.url) for one in (db, other, db, other)))
            assert sum(one.delivered for one in passes) == 6
            assert len({one["source"] for one in receiver.payloads}) == len(receiver.payloads) == 6

    asyncio.run(scenario())


@on_both_databases
async def test_it_is_given_up_after_so_many_tries_with_a_note(db: Database) -> None:
    await crawl(db, await make_source(db), Site(PAGES))
    async with open_receiver(*[302] * MAX_ATTEMPTS) as receiver:
        passes = [await deliver(db, receiver.url, later=timedelta(days=number)) for number in range(MAX_ATTEMPTS + 1)]
        assert len(receiver.requests) == MAX_ATTEMPTS, "a redirect is not followed"
    assert passes == [*[DeliveryReport(put_off=1)] * (MAX_ATTEMPTS - 1), DeliveryReport(given_up=1), DeliveryReport()]
    assert (await service.show_source(db, "docs")).webhook_error == "answered 302"


@on_both_databases
async def test_a_source_has_a_webhook_of_its_own_besides_the_operators(db: Database) -> None:
    async with open_receiver() as operators, open_receiver() as own:
        host_and_port = own.url.split("/")[2]
        source = await make_source(db, settings=SourceSettings(webhook=own.url))
        await crawl(db, source, Site(PAGES))
        assert await deliver(db, operators.url, allowed=host_and_port) == DeliveryReport(delivered=2)
        assert [one.payloads[0]["source"] for one in (operators, own)] == ["docs", "docs"]
        await set_webhook(db, "")
        await crawl(db, source, Site(PAGES | {ROOT: Page("changed", PAGES[ROOT].links)}))
        assert await deliver(db, operators.url) == DeliveryReport(delivered=1)


@pytest.mark.parametrize(
    ("giver", "allows", "delivered"),
    [(Authority.CALLER, False, False), (Authority.CALLER, True, False), (Authority.OWNER, False, False),
     (Authority.OWNER, True, True)],
)  # fmt: skip
@on_both_databases
async def test_a_webhook_of_a_source_borrows_neither_the_operators_address_nor_the_operators_secret(
    db: Database, giver: Authority, allows: bool, delivered: bool
) -> None:
    async with open_receiver() as receiver:
        other = receiver.url.replace("/hook?key=of+mine", "/other")
        host = other.removeprefix("http://").partition("/")[0]
        settings = SourceSettings(webhook=other, webhook_secret="a secret of the source")
        settings = settings.record_given(["webhook", "webhook_secret"], giver)
        await crawl(db, await make_source(db, settings=settings), Site(PAGES))
        await deliver(db, receiver.url, allowed=host if allows else "")
    assert sorted(request.path for request in receiver.requests) == ["/hook", *(["/other"] if delivered else [])]
    for request, body in zip(receiver.requests, receiver.bodies, strict=True):
        secret = SECRET if request.path == "/hook" else "a secret of the source"
        signature = webhooks.sign(secret, request.headers["Kept-Timestamp"], body)
        assert request.headers["Kept-Signature"] == f"sha256={signature}"


@on_both_databases
async def test_a_private_address_that_the_operator_did_not_name_gets_no_request(db: Database) -> None:
    async with open_receiver() as receiver:
        await crawl(db, await make_source(db, settings=SourceSettings(webhook=receiver.url)), Site(PAGES))
        assert await deliver(db) == DeliveryReport(put_off=1, dropped=1)
        assert receiver.requests == []
    [notice] = await untold(db)
    assert "is not a public address" in (notice.error or "")


@on_both_databases
async def test_what_nobody_wants_to_know_is_dropped(db: Database) -> None:
    await crawl(db, await make_source(db), Site(PAGES))
    assert await deliver(db) == DeliveryReport(dropped=1)
    assert await untold(db) == []
    other = await make_source(db, "other", root="https://other.test/")
    await crawl(db, other, Site({other.root: Page("root")}, root=other.root))
    await service.remove_source(db, "other")
    async with open_receiver() as receiver:
        assert await deliver(db, receiver.url) == DeliveryReport(dropped=1)


@on_both_databases
async def test_without_a_secret_there_is_no_signature_and_one_that_is_missing_is_waited_for(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, Site(PAGES))
    async with open_receiver() as receiver:
        assert await deliver(db, receiver.url, secret="env:NOWHERE") == DeliveryReport(put_off=1)
        assert receiver.requests == []
        assert await deliver(db, receiver.url, secret="", later=timedelta(minutes=1)) == DeliveryReport(delivered=1)
        assert "Kept-Signature" not in receiver.requests[0].headers


@on_both_databases
async def test_a_receiver_that_is_down_ends_the_pass_and_loses_nothing(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "BATCH_SIZE", 2)
    for number in range(5):
        source = await make_source(db, f"s{number}", root=f"https://s{number}.test/")
        await crawl(db, source, Site({source.root: Page("root")}, root=source.root))
    async with open_receiver(500, 500) as receiver:
        assert await deliver(db, receiver.url) == DeliveryReport(put_off=2)
        assert await deliver(db, receiver.url) == DeliveryReport(delivered=3)
        assert await deliver(db, receiver.url, later=timedelta(minutes=1)) == DeliveryReport(delivered=2)
