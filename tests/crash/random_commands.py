"""Run random commands in random order, and compare the statuses of jobs with a model.

python -m tests.crash.random_commands --store postgres --commands 1000
"""

import argparse
import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from kept.crawl.engine import CrawlRun
from kept.crawl.lifecycle import LifecycleRules
from kept.errors import NeedsDecision
from kept.jobs.worker import claim_and_run, this_host
from kept.maintenance.reaper import Reaper
from kept.model.job import JOB_TRANSITIONS, CrawlJob, JobStatus, Lease
from kept.model.source import Source
from kept.service import jobs, sources
from kept.store.database import Database, open_database
from tests.contract.databases import run_sql
from tests.factories import ROOT, Page, Site, make_lease, make_source, read_scripted
from tests.postgres import PostgresServer

LIVE = (JobStatus.PENDING, JobStatus.PROCESSING, JobStatus.PAUSED)
AT_ONCE = 30  # commands to one database


class Commands(RuleBasedStateMachine):
    """Two sources and all commands on their jobs, with a model of the expected statuses."""

    names = st.sampled_from(["a", "b"])
    new_database: ClassVar[Callable[[], str]]
    close_database: ClassVar[Callable[[str], None]]

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.url = type(self).new_database()
        self.db: Database = self.do(open_database(self.url))
        self.kept: dict[str, Source] = {}
        self.status: dict[str, JobStatus] = {}  # of every job that ever was
        self.live: dict[str, str] = {}  # source -> its live job
        self.again: set[str] = set()
        self.ghosts: dict[str, Lease] = {}  # leases of dead workers that are not reaped yet

    def do(self, coroutine: Any) -> Any:
        return self.loop.run_until_complete(coroutine)

    def teardown(self) -> None:
        self.do(self.db.close())
        self.loop.close()
        type(self).close_database(self.url)

    @rule(name=names)
    def request_crawl(self, name: str) -> None:
        if name not in self.kept:
            self.kept[name] = self.do(make_source(self.db, name, root=f"{ROOT}{name}/"))
        job = self.live.get(name)
        if job and self.status[job] is JobStatus.PAUSED:
            with pytest.raises(NeedsDecision):
                self.do(jobs.request_crawl(self.db, name))
            return
        requested = self.do(jobs.request_crawl(self.db, name))
        assert job in (None, requested.id)
        if job and self.status[job] is JobStatus.PROCESSING:
            self.again.add(job)
        self.live[name] = requested.id
        self.status.setdefault(requested.id, JobStatus.PENDING)

    @rule(name=names, command=st.sampled_from(["pause", "resume", "cancel"]))
    def steer(self, name: str, command: str) -> None:
        job = self.live.get(name)
        if job is None:
            return
        to = {"pause": JobStatus.PAUSED, "resume": JobStatus.PENDING, "cancel": JobStatus.CANCELLED}[command]
        frm = {"pause": LIVE[:2], "resume": LIVE[2:], "cancel": LIVE}[command]
        verb = {"pause": jobs.pause_job, "resume": jobs.resume_job, "cancel": jobs.cancel_job}[command]
        if self.status[job] not in frm:
            with pytest.raises(NeedsDecision):
                self.do(verb(self.db, job))
            return
        assert to in JOB_TRANSITIONS[self.status[job]]
        assert self.do(verb(self.db, job)).job.status is to
        self.status[job] = to
        if to is JobStatus.CANCELLED:
            del self.live[name]

    @rule()
    def work(self) -> None:
        """Claim the first job that is due, and crawl it to its end."""
        site = Site({f"{ROOT}{name}/": Page(name * 30) for name in "ab"})

        def make_run(lease: Lease, source: Source) -> CrawlRun:
            site.root = source.root
            return CrawlRun(self.db, lease, source, site, read=read_scripted, signature="1", rules=LifecycleRules())

        done: CrawlJob | None = self.do(claim_and_run(self.db, None, make_run))
        waiting = [job for job in self.live.values() if self.status[job] is JobStatus.PENDING]
        assert (done is None) == (not waiting)
        if done is None:
            return
        assert done.id in waiting
        name = next(name for name, job in self.live.items() if job == done.id)
        assert done.status is JobStatus.COMPLETED, done.error
        self.status[done.id] = done.status
        del self.live[name]
        self.follow(name, done.id)

    @rule()
    def die(self) -> None:
        """Claim a job as a worker that dies."""
        waiting = [job for job in self.live.values() if self.status[job] is JobStatus.PENDING]
        if waiting:
            lease = self.do(make_lease(self.db, host=this_host(), pid=2**22 + 1))
            assert lease.job_id in waiting
            self.status[lease.job_id] = JobStatus.PROCESSING
            self.ghosts[lease.id] = lease

    @rule()
    def reap(self) -> None:
        reaped = self.do(Reaper().reap(self.db))
        assert reaped.workers == len(self.ghosts)
        for job in {lease.job_id for lease in self.ghosts.values()}:
            if self.status[job] is JobStatus.PROCESSING:
                now = self.do(jobs.get_job(self.db, job))
                assert now.status in (JobStatus.PENDING, JobStatus.FAILED)
                self.status[job] = now.status
                if now.status is JobStatus.FAILED:
                    name = next(name for name, live in self.live.items() if live == job)
                    del self.live[name]
                    self.follow(name, job)
        self.ghosts.clear()

    @rule(name=names)
    def remove(self, name: str) -> None:
        if name in self.kept:
            self.do(sources.remove_source(self.db, name))
            del self.kept[name]
            if job := self.live.pop(name, None):
                self.status[job] = JobStatus.CANCELLED

    def follow(self, name: str, job: str) -> None:
        """Check that a request made during a crawl is not lost."""
        if job in self.again:
            follower = self.do(sources.show_source(self.db, name)).last_job
            assert follower is not None
            assert follower.id not in self.status
            self.live[name], self.status[follower.id] = follower.id, follower.status

    @invariant()
    def every_job_is_where_the_commands_have_brought_it(self) -> None:
        async def look() -> list[tuple[Any, ...]]:
            async with self.db.snapshot() as snapshot:
                return await run_sql(snapshot, "SELECT id, status FROM crawl_jobs")

        assert {str(id): status for id, status in self.do(look())} == self.status


def run(server: PostgresServer | None, folder: Path, *, commands: int) -> None:
    """Run about this number of commands on new databases of the server, or in the folder without one."""
    numbers = iter(range(1_000_000))

    class There(Commands):
        new_database = staticmethod(
            server.create_database if server else lambda: f"sqlite:///{folder}/{next(numbers)}.db"
        )
        close_database = staticmethod(server.drop_database if server else lambda url: None)

    run_state_machine_as_test(
        There,
        settings=settings(
            max_examples=-(-commands // AT_ONCE),
            stateful_step_count=AT_ONCE,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser("tests.crash.random_commands", description=__doc__)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="postgres")
    parser.add_argument("--commands", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = PostgresServer() if arguments.store == "postgres" else None
        try:
            if server:
                server.start()
            run(server, Path(folder), commands=arguments.commands)
        finally:
            if server:
                server.close()
    print(f"{arguments.commands} commands on {arguments.store}: every job was where they brought it")


if __name__ == "__main__":
    main()
