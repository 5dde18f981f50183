"""Many requests during a crawl: the short form of ``python -m bench.load``, which measures the speed."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

from tests.crash.workers import until
from tests.e2e.load import Answer, flood, offer
from tests.e2e.server import wait_for
from tests.e2e.test_cli import Kept
from tests.e2e.test_middleware import API, Restarted
from tests.sites.manual import served

SEARCHES = [f"{API}/search?q={word}" for word in ("everywhere", "manual+page", "found", "nothing+like+it")]


def test_during_a_crawl_all_clients_are_answered_and_the_excess_is_refused(tmp_path: Path) -> None:
    kept = Kept(tmp_path, f"sqlite:///{tmp_path}/kept.db")
    kept.environment |= {"KEPT_NETWORK__ALLOW_PRIVATE": "1", "KEPT_SERVE__REQUESTS_PER_MINUTE": "60"}
    with served(400) as site, Restarted(kept) as server, server.client() as api:

        def crawl(name: str) -> None:
            job = api.post(f"{API}/sources", json={"root": site.root, "name": name, "version": name}).json()["job"]
            assert wait_for(api, job)["status"] == "completed"

        crawl("first")
        answers = asyncio.run(_meanwhile(server.url, lambda: crawl("second")))
        assert {answer.status for answer in answers} == {200}
        assert answers

        crowd = asyncio.run(flood(server.url, SEARCHES, connections=120, each=3))
        assert {answer.status for answer in crowd} == {200, 503}
        assert all(answer.retry_after for answer in crowd if answer.status == 503)
        greedy = {"Authorization": f"Bearer {kept('keys', 'add', 'greedy').out.strip()}"}
        too_often = asyncio.run(flood(server.url, [f"{API}/sources/first@first"], connections=10, each=20, **greedy))
        assert {(answer.status, answer.retry_after) for answer in too_often} == {(200, None), (429, "1")}
        assert api.get(SEARCHES[0]).status_code == 200

        os.kill(_worker_of(server.process.pid), signal.SIGKILL)
        crawl("third")  # another has come for the one that died
        worker = _worker_of(server.process.pid)
    assert not Path(f"/proc/{worker}").exists()


def test_a_worker_does_not_outlive_its_server(tmp_path: Path) -> None:
    server = Restarted(Kept(tmp_path, f"sqlite:///{tmp_path}/kept.db"), "--verbose")
    server.__enter__()
    until(lambda: _workers_of(server.process.pid) != [])
    worker = _worker_of(server.process.pid)
    assert "--verbose" in Path(f"/proc/{worker}/cmdline").read_text(), "it tells as much as its server"
    server.process.kill()
    server.process.communicate()
    until(lambda: not Path(f"/proc/{worker}").exists())


async def _meanwhile(url: str, do: Callable[[], None]) -> list[Answer]:
    stop = asyncio.Event()
    queries = asyncio.create_task(offer(url, SEARCHES, stop, connections=40, a_second=10))
    await asyncio.to_thread(do)
    stop.set()
    return await queries


def _worker_of(server: int) -> int:
    (worker,) = _workers_of(server)
    return worker


def _workers_of(server: int) -> list[int]:
    tasks = Path(f"/proc/{server}/task").iterdir()
    children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return [child for child in children if "--behind" in Path(f"/proc/{child}/cmdline").read_text()]
