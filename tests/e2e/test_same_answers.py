"""Every interface gives the same answers: each function is called through all of them on one database.

A row of the tables is a function, a column an interface with its own spelling of the call. Functions that write are
called through each interface with a source of its own, named after it; functions that read, with the same source.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
from mcp import Client
from mcp_types import TextContent

from kept.runtime.runtime import open_runtime
from kept.server.mcp.server import make_mcp_server
from kept.settings import load
from tests.e2e.server import serving as server
from tests.e2e.server import wait_for
from tests.e2e.test_mcp import page
from tests.sites.pages import serving

Interface: TypeAlias = Callable[[Any], Awaitable[Any]]

OWN = {"seconds", "settings"}  # how long it took; what agents are spared
EACH = {
    *("id", "job", "created_at", "started_at", "completed_at", "last_heartbeat", "verified_at"),
    *("rate", "places", "workers", "bytes"),
}  # of two crawls of the same site

PAGES = {
    "/": page("Terns", "A tern rests between two flights.", "/pool", "/gone"),
    "/pool": page("Pools", "A connection pool keeps connections open for the next tern."),
}

# function -> its call in each interface; {via} is the name of the interface, {root} the URL of the site.
WRITING: dict[str, dict[str, Any]] = {
    "add": {
        "cli": ["add", "{root}", "--name", "terns", "--version", "{via}", "--tag", "birds"],
        "mcp": (
            "add_source",
            {"root": "{root}", "name": "terns", "version": "{via}", "tag": ["birds"], "wait": 60},
        ),
        "api": ("POST", "/sources", {"root": "{root}", "name": "terns", "version": "{via}", "tag": ["birds"]}),
    },
    "refresh": {
        "cli": ["refresh", "terns@{via}"],
        "mcp": ("refresh_source", {"source": "terns@{via}", "wait": 60}),
        "api": ("POST", "/sources/terns@{via}/crawls", {}),
    },
}
READING: dict[str, dict[str, Any]] = {
    "list": {"cli": ["list"], "mcp": ("list_sources", {}), "api": ("GET", "/sources", {})},
    "search": {
        "cli": ["search", "connection pool", "--source", "terns@cli"],
        "mcp": ("search_docs", {"query": "connection pool", "source": "terns@cli", "limit": 10}),
        "api": ("GET", "/search", {"q": "connection pool", "source": "terns@cli"}),
    },
    "search a part of it, and around": {
        "cli": [
            *("search", "pool", "--source", "terns", "--version", "cli", "--path", "pool"),
            *("--limit", "1", "--context", "document", "--budget", "500"),
        ],
        "mcp": (
            "search_docs",
            {"query": "pool", "source": "terns", "version": "cli", "path": "pool", "limit": 1}
            | {"context": "document", "budget": 500},
        ),
        "api": (
            "GET",
            "/search",
            {"q": "pool", "source": "terns", "version": "cli", "path": "pool", "limit": 1}
            | {"context": "document", "budget": 500},
        ),
    },
    "search for what is nowhere": {
        "cli": ["search", "conection", "--kind", "code", "--language", "python"],
        "mcp": ("search_docs", {"query": "conection", "kind": "code", "language": "python"}),
        "api": ("GET", "/search", {"q": "conection", "kind": "code", "language": "python"}),
    },
    "read": {
        "cli": ["read", "{root}pool"],
        "mcp": ("read_doc", {"url": "{root}pool"}),
        "api": ("GET", "/documents", {"url": "{root}pool"}),
    },
    "read a section as it was": {
        "cli": ["read", "{root}pool", "--section", "more", "--generation", "1"],
        "mcp": ("read_doc", {"url": "{root}pool", "section": "more", "generation": 1}),
        "api": ("GET", "/documents", {"url": "{root}pool", "section": "more", "generation": 1}),
    },
    "why": {
        "cli": ["why", "{root}gone"],
        "mcp": ("why_missing", {"url": "{root}gone"}),
        "api": ("GET", "/why", {"url": "{root}gone"}),
    },
    "try": {
        "cli": ["try", "{root}pool"],
        "mcp": ("fetch_url", {"url": "{root}pool"}),
        "api": ("POST", "/try", {"url": "{root}pool"}),
    },
    "diff": {
        "cli": ["diff", "terns@cli", "1", "2"],
        "mcp": ("what_changed", {"source": "terns@cli"}),
        "api": ("GET", "/sources/terns@cli/diff", {"from": 1, "to": 2}),
    },
    "jobs": {"cli": ["jobs"], "mcp": ("list_jobs", {}), "api": ("GET", "/jobs", {})},
    "job": {"cli": ["job", "{job}"], "mcp": ("get_job", {"job": "{job}"}), "api": ("GET", "/jobs/{job}", {})},
}
ENDING: dict[str, dict[str, Any]] = {
    "remove": {
        "cli": ["remove", "terns@{via}"],
        "mcp": ("remove_source", {"source": "terns@{via}"}),
        "api": ("DELETE", "/sources/terns@{via}", {}),
    },
}


def test_every_function_gives_the_same_answer_through_every_interface(tmp_path: Path) -> None:
    async def scenario() -> None:
        with serving(PAGES) as root:
            async with all_interfaces(tmp_path) as interfaces:
                words = {"root": root}
                for verb, row in WRITING.items():
                    answers = {
                        name: await interfaces[name](spelled(row[name], words | {"via": name})) for name in interfaces
                    }
                    for name, answer in answers.items():
                        of_the_first = said_of(answers["cli"], "cli", name)
                        assert_same(of_the_first, answer, f"{verb} at {name}", but=OWN | EACH)
                words |= {"job": answers["cli"]["job"]}
                for verb, row in READING.items():
                    first, *others = await asyncio.gather(
                        *(interfaces[name](spelled(row[name], words)) for name in interfaces)
                    )
                    for answer in others:
                        assert_same(first, answer, verb, but=OWN)
                    assert verb != "search for what is nowhere" or first["did_you_mean"] == "connection"
                for verb, row in ENDING.items():
                    for name, interface in interfaces.items():
                        answer = await interface(spelled(row[name], words | {"via": name}))
                        assert answer == {"source": f"terns@{name}", "removed": True}, verb

    asyncio.run(scenario())


@asynccontextmanager
async def all_interfaces(folder: Path) -> AsyncIterator[dict[str, Interface]]:
    """Open every interface on one database."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("KEPT_", "XDG_"))},
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "HOME": str(folder),
        "KEPT_DATABASE": f"sqlite:///{folder}/kept.db",
        "KEPT_NETWORK__ALLOW_PRIVATE": "1",
    }
    settings = load(environment=environment, folder=folder)
    async with open_runtime(settings) as runtime:
        stop = asyncio.Event()
        working = asyncio.create_task(runtime.worker_host.run_worker(stop))
        try:
            with server(settings.database, folder, workers=0) as serving, serving.client() as http:
                async with Client(make_mcp_server(runtime.services, settings)) as client:
                    yield {"cli": by_command_line(environment), "mcp": by_mcp(client), "api": by_http(http)}
        finally:
            stop.set()
            await working


def by_command_line(environment: Mapping[str, str]) -> Interface:
    async def call_interface(arguments: list[str]) -> Any:
        command = [sys.executable, "-m", "kept", *arguments, "--json"]
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=-1, stderr=-1)
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        return json.loads(out)

    return call_interface


def by_mcp(client: Client) -> Interface:
    async def call_interface(call: tuple[str, dict[str, Any]]) -> Any:
        result = await client.call_tool(*call)
        [content] = result.content
        assert isinstance(content, TextContent)
        assert not result.is_error, content.text
        return result.structured_content

    return call_interface


def by_http(client: httpx2.Client) -> Interface:
    """Call the API. A request for a crawl does not wait for it, so its answer is completed with the job at its end."""

    def call_interface(call: tuple[str, str, dict[str, Any]]) -> Any:
        method, path, body = call
        arguments = {"params": body} if method == "GET" else {"json": body} if method == "POST" else {}
        response = client.request(method, f"/api/v1{path}", **arguments)
        assert response.is_success, response.text
        answer = response.json()
        if response.status_code not in (201, 202):
            return answer
        job = wait_for(client, answer["job"])
        source = client.get(f"/api/v1/sources/{job['source']}").json()
        counts = {name: job["progress"][name] for name in source["last_job"]["counts"]}
        return answer | job | {"job": job["id"], "counts": counts, "partial": source["partial"]}

    return partial(asyncio.to_thread, call_interface)


def spelled(value: Any, words: Mapping[str, str]) -> Any:
    match value:
        case str():
            return value.format(**words)
        case dict():
            return {name: spelled(one, words) for name, one in value.items()}
        case list() | tuple():
            return [spelled(one, words) for one in value]
        case _:
            return value


def said_of(answer: Any, name: str, other: str) -> Any:
    """Return the answer as it would be for the source of the other interface."""
    return json.loads(json.dumps(answer).replace(f"terns@{name}", f"terns@{other}"))


def assert_same(first: Any, other: Any, where: str, *, but: set[str]) -> None:
    """Assert that the other answer has everything that the first one has; it may have more."""
    if isinstance(first, dict):
        for name in first.keys() - but:
            assert name in other, f"{where} does not say {name}"
            assert_same(first[name], other[name], f"{where}: {name}", but=but)
    elif isinstance(first, list):
        assert len(first) == len(other), where
        for number, (one, another) in enumerate(zip(first, other, strict=True)):
            assert_same(one, another, f"{where}[{number}]", but=but)
    else:
        assert first == other, where
