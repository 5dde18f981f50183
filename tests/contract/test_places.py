"""Kinds, places and named entries are stored with a content, and read, on both databases."""

from datetime import UTC, datetime

import pytest

from kept.errors import NotFound
from kept.extract.reader import parse_page
from kept.extract.sections import compute_content_hash
from kept.model.document import PageKind, ParsedPage, ShownVersion
from kept.service import places
from kept.store import contents, export
from kept.store.database import Database
from tests.contract.databases import on_both_databases
from tests.factories import ROOT


@on_both_databases
async def test_a_content_keeps_its_kind_places_and_entries_and_is_read_at_each(db: Database) -> None:
    long = "It does something that takes more than a few words to say. " * 40
    html = f"<h1 id=top>(1) OPT_A</h1><p>{long}<dl><dt><a id='git%20a'></a>-a<dd>{long}<dt>-b<dd>short</dl><p id=p>end"
    page = parse_page(html.encode(), content_type="text/html", url=ROOT)
    assert isinstance(page, ParsedPage)
    content = page.content._replace(kind=PageKind.GLOSSARY)
    content = content._replace(hash=compute_content_hash(content))
    async with db.transaction() as tx:
        (id,) = (await contents.get_or_insert(tx, {content.hash: content})).values()
    async with db.snapshot() as snapshot:
        kept = await export.load_content(snapshot, id)
        assert kept == content._replace(index_fields=())
        assert compute_content_hash(kept) == content.hash
        now = datetime.now(UTC)
        version = ShownVersion(
            url=ROOT,
            title="",
            markdown=content.markdown,
            content_id=id,
            content_hash=content.hash,
            fetched_at=now,
            verified_at=now,
        )
        assert (await places.read_place(snapshot, version, "git%20a")).startswith("**-a**\n\nIt does")
        assert await places.read_place(snapshot, version, "-b") == "**-b**\n\nshort"
        assert await places.read_place(snapshot, version, "p") == "end"
        assert (await places.read_place(snapshot, version, "TOP")).endswith("end")
        assert (await places.read_place(snapshot, version, "OPT_A")).startswith("# (1) OPT_A")
        with pytest.raises(NotFound, match=r"no section 'git a'\. It has: top, git%20a, p, "):
            await places.read_place(snapshot, version, "git a")
