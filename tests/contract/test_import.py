"""An import takes a manifest as a whole or refuses it with the place and the reason, and trusts none."""

import asyncio
import copy
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kept.errors import InvalidInput, NotFound
from kept.extract.sections import SectionNode, SectionRules, build_content, compute_content_hash
from kept.maintenance.check import check_integrity
from kept.maintenance.import_ import ImportReport
from kept.maintenance.import_trust import find_authority, refuse_all, secret_names, without_authority, without_secrets
from kept.model.document import Content
from kept.model.export import ManifestSource
from kept.model.search_request import SearchRequest
from kept.model.source import Access, Authority, Header, SourceKind, SourceSettings
from kept.service import documents, export
from kept.service.search import search_sections
from kept.service.source_options import SOURCE_OPTIONS, SourceOptions
from kept.store.database import Database
from tests.contract.databases import async_test, on_both_databases, run_sql
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source, shown

SHA = sha256(b"any").hexdigest()
LONG = os.environ.get("KEPT_TEST_LONG") == "1"


async def read(text: str, url: str) -> Content | None:
    return build_content("", text, SectionNode(content=text), SectionRules()) if text.strip() else None


async def take(db: Database, folder: Path, confirm: Callable[[Mapping[str, list[str]]], bool] = refuse_all) -> Any:
    return await export.import_(db, str(folder), read=read, hash_content=compute_content_hash, confirm=confirm)


def design_manifest() -> dict[str, Any]:
    """Return a manifest as the lifecycle design describes it."""
    entry = {"content_hash": SHA, "status": "active", "last_seen": "2026-11-01T10:00:00Z", "retry_count": 0}
    versions = [
        {"version_id": "v1", "date": "2026-09-01T00:00:00+02:00", "hash": "1" * 64},
        {"version_id": "v2", "date": "2026-10-01T00:00:00+02:00", "hash": "2" * 64},
    ]
    return {
        "files": {
            "/srv/docs/a.md": {"doc_id": "doc-1", **entry, "versions": versions},
            "/srv/docs/sub/b.md": {"doc_id": SHA, **entry, "status": "error", "retry_count": 2, "versions": []},
            "/srv/docs/gone.md": {"doc_id": "doc-3", **entry, "status": "deleted", "versions": []},
            "https://docs.test/guide/": {"doc_id": "5f0c1e9a-1111-4222-8333-444455556666", **entry, "versions": []},
        }
    }


def write_design_export(folder: Path, manifest: dict[str, Any]) -> None:
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for doc_id in ("doc-1", SHA, "doc-3", "5f0c1e9a-1111-4222-8333-444455556666"):
        home = folder / "knowledge_base" / "documents" / doc_id
        for place, text in (("", "today"), ("versions/v1", "first"), ("versions/v2", "second")):
            if not place or doc_id == "doc-1":
                (home / place).mkdir(parents=True, exist_ok=True)
                (home / place / "content.md").write_text(f"# Page {doc_id[:8]}\n\nThe {text} words about zebras.\n")


@on_both_databases
async def test_the_manifest_of_the_lifecycle_design_is_imported_with_its_ids_and_its_history(
    db: Database, tmp_path: Path
) -> None:
    write_design_export(tmp_path, design_manifest())
    done = await take(db, tmp_path)
    assert (done.documents, done.unread) == (4, [])
    assert {source.label: source.root for source in done.sources} == {
        "docs": "file:///srv/docs",
        "docs.test-guide": "https://docs.test/guide/",
    }
    for doc_id in ("doc-1", SHA, "5f0c1e9a-1111-4222-8333-444455556666"):
        assert "today words" in (await documents.read_document(db, doc_id)).markdown
    history = await documents.read_history(db, "doc-1")
    assert [version.fetched_at.month for version in history.versions] == [8, 9, 11]
    assert "first words" in (await documents.read_document(db, "doc-1", generation=1)).markdown
    assert (await documents.read_history(db, "doc-3")).lifecycle == "deleted"
    with pytest.raises(NotFound):
        await documents.read_document(db, "doc-2")
    assert await check_integrity(db, compute_content_hash) == []

    again = tmp_path / "again"
    await export.export(db, str(again), [])
    files = json.loads((again / "manifest.json").read_text())["files"]
    assert {path: entry["doc_id"] for path, entry in files.items()} == {
        path: entry["doc_id"] for path, entry in design_manifest()["files"].items()
    }
    assert files["/srv/docs/a.md"]["content_hash"] == SHA
    assert files["/srv/docs/a.md"]["last_seen"] == "2026-11-01T10:00:00.000000+00:00"
    assert [one["hash"] for one in files["/srv/docs/a.md"]["versions"]] == ["1" * 64, "2" * 64, SHA]
    assert (again / "documents" / "doc-1" / "content.md").is_file()


@async_test
async def test_former_ids_survive_any_number_of_exports_and_imports(tmp_path: Path) -> None:
    write_design_export(tmp_path, design_manifest())
    folder = tmp_path
    for number in range(3):
        async with database_at(f"sqlite:///{tmp_path}/{number}.db") as db:
            await take(db, folder)
            assert "today" in (await documents.read_document(db, "doc-1")).markdown
            folder = tmp_path / f"export {number}"
            await export.export(db, str(folder), [])
    assert (tmp_path / "export 1" / "manifest.json").read_bytes() == (folder / "manifest.json").read_bytes()


@async_test
async def test_two_manifests_may_use_the_same_ids(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_design_export(tmp_path / name, {"files": {f"/srv/{name}/a.md": {"doc_id": "doc-1"}}})
    async with database_at(f"sqlite:///{tmp_path}/kept.db") as db:
        await take(db, tmp_path / "one")
        await take(db, tmp_path / "two")
        assert (await documents.read_document(db, "doc-1")).url == "file:///srv/two/a.md"
        await export.export(db, str(tmp_path / "both"), [])
    async with database_at(f"sqlite:///{tmp_path}/other.db") as db:
        assert (await take(db, tmp_path / "both")).documents == 2


@on_both_databases
async def test_the_content_hash_of_an_export_is_the_sha256_of_the_file(db: Database, tmp_path: Path) -> None:
    source = await make_source(db)
    page = Page("the root")
    await crawl(db, source, Site({ROOT: page}))
    await export.export(db, str(tmp_path / "mirror"), [])
    ((_, entry),) = json.loads((tmp_path / "mirror" / "manifest.json").read_text())["files"].items()
    assert entry["content_hash"] == sha256(page.body).hexdigest()
    assert [version["hash"] for version in entry["versions"]] == [entry["content_hash"]]


@pytest.mark.parametrize("last_seen", ["2026-11-01T10:00:00", 1793527200, 1793527200000, 1793527200.5, None])
@async_test
async def test_times_without_a_zone_and_since_1970_are_taken_and_searched(tmp_path: Path, last_seen: object) -> None:
    manifest = design_manifest()
    manifest["files"]["/srv/docs/a.md"]["last_seen"] = last_seen
    write_design_export(tmp_path, manifest)
    async with database_at(f"sqlite:///{tmp_path}/kept.db") as db:
        await take(db, tmp_path)
        found = await search_for(db, "zebras")
        assert len(found) == 3
        if last_seen is not None:
            history = await documents.read_history(db, "doc-1")
            assert history.versions[-1].fetched_at.isoformat()[:16] == "2026-11-01T10:00"


async def search_for(db: Database, text: str) -> list[Any]:
    return list(await search_sections(db, SearchRequest(text=text)))


BROKEN: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "unknown status": ("'/srv/docs/a.md'.*'status'", lambda files: files["/srv/docs/a.md"].update(status="odd")),
    "doubled doc_id": (
        "'/srv/docs/gone.md'.*'doc_id'",
        lambda files: files["/srv/docs/gone.md"].update(doc_id="doc-1"),
    ),
    "path with ..": ("'/srv/../x.md'", lambda files: files.update({"/srv/../x.md": {"doc_id": "x"}})),
    "doc_id with ..": ("'doc_id'", lambda files: files["/srv/docs/a.md"].update(doc_id="..")),
    "version_id with ..": (
        "version_id",
        lambda files: files["/srv/docs/a.md"]["versions"][0].update(version_id="../.."),
    ),
    "no doc_id": ("'doc_id'.*missing", lambda files: files["/srv/docs/a.md"].pop("doc_id")),
    "two spellings of one path": ("same URL", lambda files: files.update({"/srv/docs/./a.md": {"doc_id": "doc-3b"}})),
    "retries that are no number": ("'retry_count'", lambda files: files["/srv/docs/a.md"].update(retry_count="3")),
    "another scheme": ("gopher", lambda files: files.update({"gopher://x/": {"doc_id": "x"}})),
    "a time that is none": ("'last_seen'", lambda files: files["/srv/docs/a.md"].update(last_seen="yesterday")),
    "a time to come": ("future", lambda files: files["/srv/docs/a.md"].update(last_seen="2999-01-01")),
    "half a surrogate pair": ("'content_hash'", lambda files: files["/srv/docs/a.md"].update(content_hash="\ud800")),
}


@pytest.mark.parametrize("what", BROKEN)
@on_both_databases
async def test_a_broken_manifest_is_refused_whole_with_the_place_and_the_reason(
    db: Database, tmp_path: Path, what: str
) -> None:
    place, damage = BROKEN[what]
    manifest = design_manifest()
    damage(manifest["files"])
    write_design_export(tmp_path, manifest)
    for doc_id in ("doc-3b", "x"):
        shutil.copytree(tmp_path / "knowledge_base/documents/doc-3", tmp_path / "knowledge_base/documents" / doc_id)
    before = (tmp_path / "manifest.json").read_bytes()
    with pytest.raises(InvalidInput, match=f"(?s){place}.*Nothing was imported"):
        await take(db, tmp_path)
    assert await dump(db) == await dump(db, empty=True)
    assert (tmp_path / "manifest.json").read_bytes() == before
    assert not (tmp_path / "manifest.json.bak").exists()


TABLES = ("sources", "generations", "documents", "versions", "contents", "sections", "crawl_jobs", "unembedded")


async def dump(db: Database, *, empty: bool = False) -> dict[str, list[str]]:
    """Return every row of the tables that an import writes; or what an empty database has."""
    if empty:
        return {table: [] for table in TABLES}
    async with db.snapshot() as snapshot:
        return {table: sorted(map(str, await run_sql(snapshot, f"SELECT * FROM {table}"))) for table in TABLES}


@pytest.mark.parametrize("link", ["content.md", "doc-1", "documents", "knowledge_base", "manifest.json"])
@async_test
async def test_files_are_opened_without_following_links(tmp_path: Path, link: str) -> None:
    folder, outside = tmp_path / "export", tmp_path / "outside"
    folder.mkdir()
    write_design_export(folder, design_manifest())
    (target,) = (
        path
        for path in folder.rglob(link)
        if "versions" not in path.parts and (link != "content.md" or path.parent.name == "doc-1")
    )
    target.rename(outside)
    target.symlink_to(outside)
    async with database_at(f"sqlite:///{tmp_path}/kept.db") as db:
        with pytest.raises(InvalidInput, match=r"symbolic link.*Nothing was imported"):
            await take(db, folder)
        assert await dump(db) == await dump(db, empty=True)


@async_test
async def test_a_pipe_in_an_export_is_refused_and_does_not_wait(tmp_path: Path) -> None:
    write_design_export(tmp_path, design_manifest())
    content = tmp_path / "knowledge_base/documents/doc-1/content.md"
    content.unlink()
    os.mkfifo(content)
    async with database_at(f"sqlite:///{tmp_path}/kept.db") as db:
        with pytest.raises(InvalidInput, match="not a regular file"):
            await asyncio.wait_for(take(db, tmp_path), 10)


@async_test
async def test_the_upgrade_of_a_manifest_never_writes_through_a_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    folder = tmp_path / "export"
    folder.mkdir()
    write_design_export(folder, {"files": {"/srv/docs/a.md": {"doc_id": "doc-1"}}})
    for name in (".manifest.json.draft", "manifest.json.bak"):
        (folder / name).symlink_to(precious)
    async with database_at(f"sqlite:///{tmp_path}/kept.db") as db:
        await take(db, folder)
    assert not precious.exists()


POWERFUL = SourceSettings(
    access=Access(
        headers=(
            Header(name="Authorization", value="Bearer env:AWS_SECRET_ACCESS_KEY"),
            Header(name="X-Other", value="secret:authorization-0123"),
            Header(name="X-Plain", value="harmless"),
        ),
        proxy="http://127.0.0.1:3128",
        ca_file="/tmp/ca.pem",
        ignore_robots=True,
        allowed=("169.254.169.254:80",),
    ),
    schedule="1d",
    webhook="http://127.0.0.1:9/hook",
    webhook_secret="env:AWS_SECRET_ACCESS_KEY",
    hook_secret="env:HOOK",
    tags=("kept",),
    given_by=(("header", Authority.OWNER), ("webhook", Authority.CALLER), ("tag", Authority.CALLER)),
)


EXAMPLE = ManifestSource(
    place="docs",
    name="docs",
    version="",
    kind=SourceKind.WEB,
    root="https://docs.test/",
    settings=SourceSettings(),
    created_at="2026-01-01",
    generation=1,
    generations=(),
)


async def export_powerful_source(folder: Path) -> None:
    async with database_at(f"sqlite:///{folder}/first.db") as db:
        source = await make_source(db, settings=POWERFUL)
        await crawl(db, source, Site({ROOT: Page("the root")}))
        await export.export(db, str(folder / "mirror"), [])


@on_both_databases
async def test_nothing_with_authority_is_taken_without_confirmation(db: Database, tmp_path: Path) -> None:
    await export_powerful_source(tmp_path)
    asked: list[Mapping[str, list[str]]] = []

    def say_no(found: Mapping[str, list[str]]) -> bool:
        asked.append(found)
        return False

    done: ImportReport = await take(db, tmp_path / "mirror", say_no)
    (source,) = done.sources
    assert source.settings == SourceSettings(
        access=Access(headers=(Header(name="X-Plain", value="harmless"),)), tags=("kept",)
    )
    assert asked == [done.left_out]
    named = " ".join(done.left_out["docs"])
    for what in (
        "env:AWS_SECRET_ACCESS_KEY",
        "secret:",
        "169.254.169.254:80",
        "webhook http://127.0.0.1:9/hook",
        "webhook secret env:AWS_SECRET_ACCESS_KEY",
        "hook secret env:HOOK",
        "schedule",
        "proxy",
        "CA file",
    ):
        assert what in named
    async with db.snapshot() as snapshot:
        assert await run_sql(snapshot, "SELECT authority, next_run_at FROM sources") == [("caller", None)]
        ((stored,),) = await run_sql(snapshot, "SELECT CAST(settings AS TEXT) FROM generations")
    assert "env:" not in stored
    assert "169.254" not in stored


@on_both_databases
async def test_a_confirmed_import_takes_everything_except_the_secrets_of_other_sources(
    db: Database, tmp_path: Path
) -> None:
    await export_powerful_source(tmp_path)
    holder = SourceSettings(access=Access(headers=(Header(name="X-Other", value="secret:authorization-0123"),)))
    await make_source(db, "holder", root="https://holder.test/", settings=holder)
    done: ImportReport = await take(db, tmp_path / "mirror", lambda found: True)
    (source,) = done.sources
    assert [header.name for header in source.settings.access.headers] == ["Authorization", "X-Plain"]
    assert source.settings.webhook == POWERFUL.webhook
    assert source.settings.schedule == POWERFUL.schedule
    assert source.settings.webhook_secret == POWERFUL.webhook_secret
    assert dict(source.settings.given_by) == dict(POWERFUL.given_by), "what a caller gave stays a caller's"
    assert done.left_out == {"docs": ["secret authorization-0123, which belongs to holder"]}
    async with db.snapshot() as snapshot:
        assert (await run_sql(snapshot, "SELECT authority FROM sources WHERE name = 'docs'")) == [("owner",)]


def test_every_setting_that_may_name_something_of_this_machine_needs_confirmation() -> None:
    """A setting that is added later is in this test by itself."""
    for option in SOURCE_OPTIONS:
        if not (option.may_hold_secret or option.is_machine_local):
            continue
        value = {"header": "X: env:A", "cookie": "a=env:A", "ca_file": "/a"}.get(option.name, "env:A")
        given = SourceOptions(**{option.name: [value] if option.kind == "texts" else value}).apply_to(SourceSettings())
        listed = replace(EXAMPLE, settings=given)
        assert len(find_authority(listed)) == 1, option.name
        assert without_authority(given) == SourceSettings(), option.name
        named = json.loads(json.dumps(given.as_json()).replace("env:A", "secret:A"))
        if option.name not in ("ca_file", "webhook"):
            assert secret_names(SourceSettings.from_json(named)) == {"A"}, option.name
            assert without_secrets(SourceSettings.from_json(named), {"A"}) == SourceSettings(), option.name


HOSTILE = st.sampled_from(
    [
        *(None, True, -1, 0, 1, 2, 3, 2**31, 10**30, 1.5, float("nan"), "", "x", "0", "..", "../../x", "a/b"),
        *("\0", "\ud800"),
        *("x" * 300, [], {}, [[]], ["x"], [None], {"x": 1}, "active", "missing", "deleted", "error", "retired", "web"),
        *("folder", "git", "package", "http://169.254.169.254/", "file:///etc/passwd", "ftp://x/"),
        *("npm:x", "git@h:x.git"),
        *("2026-01-01", "2026-01-01T00:00:00", 1700000000, 1700000000000, "2999-01-01", "0001-01-01T00:00:00+14:00"),
        *("\r\nX: y", "a\nb", "99d", "env:HOME", "secret:x", "docs", "other", "5f0c1e9a-1111-4222-8333-444455556666"),
    ]
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside a JSON value."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*path, key)
        yield from places(member, (*path, key))


def mutate(document: Any, data: st.DataObject) -> None:
    """Replace, delete, double, rename or swap a value somewhere in a JSON document."""
    found = list(places(document))
    if not found:
        return
    path = data.draw(st.sampled_from(found))
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    key, how = path[-1], data.draw(st.sampled_from(["replace", "replace", "delete", "double", "rename", "swap"]))
    if how == "replace":
        parent[key] = data.draw(HOSTILE)
    elif how == "delete":
        del parent[key]
    elif isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    elif how == "rename":
        parent[data.draw(st.sampled_from(["x", "", "..", "/srv/docs/b.md", "http://10.0.0.1/", "docs", "\0"]))] = (
            parent.pop(key)
        )
    else:
        other = data.draw(st.sampled_from(sorted(parent)))
        parent[key], parent[other] = parent[other], parent[key]


@pytest.fixture(scope="module", params=["of the design", "of Kept"])
def template(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("template")
    if request.param == "of the design":
        write_design_export(folder, design_manifest())
        return folder

    async def export_history() -> None:
        async with database_at(f"sqlite:///{folder}/kept.db") as db:
            source = await make_source(db, settings=POWERFUL)
            pages = {ROOT + name: Page(f"{name} about zebras. " * 9) for name in "abc"}
            await crawl(db, source, Site({ROOT: Page("zebras", links=tuple(pages)), **pages}))
            pages |= {ROOT + "a": Page("other zebras " * 9), ROOT + "b": Page(gone=True), ROOT + "c": Page(error="no")}
            await crawl(db, source, Site({ROOT: Page("zebras", links=tuple(pages)), **pages}))
            await export.export(db, str(folder / "mirror"), [])

    asyncio.run(export_history())
    return folder / "mirror"


@given(data=st.data())
@settings(
    max_examples=400 if LONG else 8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_mutated_manifest_is_imported_and_works_or_is_refused_and_changes_nothing(
    template: Path, database_url: str, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "export"
        shutil.copytree(template, folder)
        targets = [folder / "manifest.json", folder / "manifest.json", *sorted(folder.rglob("version.json"))]
        for _ in range(data.draw(st.integers(1, 3))):
            target = data.draw(st.sampled_from(range(len(targets))))
            document = json.loads(targets[target].read_text())
            mutate(document, data)
            targets[target].write_text(json.dumps(document))
        asyncio.run(check_import(database_url, folder, Path(temporary) / "again"))


async def check_import(database_url: str, folder: Path, again: Path) -> None:
    async with database_at(database_url) as db:
        before = await dump(db)
        refused, done = "", ImportReport()
        try:
            done = await take(db, folder, lambda found: True)
        except InvalidInput as error:
            refused = str(error)
        if refused:
            assert "Nothing was imported" in refused or "--tree" in refused
            assert "manifest.json" in refused or "version.json" in refused or "documents/" in refused
            assert await dump(db) == before
            return
        assert await check_integrity(db, compute_content_hash) == []
        await search_for(db, "zebras")
        for source in done.sources:
            await shown(db, source)
        await export.export(db, str(again), [])
        for entry in json.loads((again / "manifest.json").read_text())["files"].values():
            history = await documents.read_history(db, entry["doc_id"])
            assert len(history.versions) == len(entry["versions"])
            if entry["status"] == "active":
                assert (await documents.read_document(db, entry["doc_id"])).document == history.document
        async with db.transaction() as tx:  # as it was before, for the next example
            await run_sql(tx, "UPDATE sources SET active_generation = NULL")
            for table in ("unembedded", "versions", "documents", "generations", "sources", "sections", "contents"):
                await run_sql(tx, f"DELETE FROM {table}")
