"""Lookup by what people type: a source by its label, a document by its id, URL or path."""

import os
import re

from kept.errors import InvalidInput, NotFound
from kept.model.generation import Generation
from kept.model.source import Source, parse_label
from kept.model.url import canonicalize_route_url, canonicalize_url, file_url, get_anchor, get_fragment
from kept.search.versions import LATEST, best_match, version_key
from kept.store import generations, sources
from kept.store.database import Connection, ReadableDatabase


async def load_source(db: ReadableDatabase, label: str) -> Source:
    async with db.snapshot() as snapshot:
        return await find_source(snapshot, label)


async def find_source(db: Connection, label: str, *, exact: bool = False) -> Source:
    """Return the source with this label. A name alone is the source without a version, else its only or newest one.

    With ``exact``, a name that could be one of several versions is refused. Raises NotFound, with a suggestion.
    """
    source = await sources.by_label(db, *parse_label(label)) if label.isprintable() else None
    if source:
        return source
    everything = await sources.all(db)
    by_version = {other.version: other for other in everything if other.name == label}
    if exact and len(by_version) > 1:
        choices = ", ".join(by_version[version].label for version in sorted(by_version, key=version_key))
        raise InvalidInput(f"'{label}' could be {choices}: say which.")
    newest = best_match(LATEST, by_version)
    if newest is not None:
        return by_version[newest]
    import difflib  # only a misspelled name needs it

    close = difflib.get_close_matches(label, [other.label for other in everything], n=1)
    hint = f"Did you mean '{close[0]}'?" if close else "'kept list' shows what there is."
    raise NotFound(f"There is no source named '{label}'. {hint}")


async def find_readable_generation(db: Connection, source: Source, number: int) -> Generation:
    """Return a generation that is or was active and is still retained. Raises NotFound."""

    generation = await generations.get(db, source.id, number)
    if generation and generation.state.is_readable:
        return generation
    if source.active_generation is None:
        raise NotFound(f"{source.label} has no generation to show yet: its first crawl is not finished.")
    raise NotFound(f"{source.label} has no generation {number} to show. 'kept generations {source.label}' lists them.")


async def find_document_id(
    db: Connection, what: str, generation: int | None = None, *, source: str | None = None
) -> tuple[str, str | None]:
    """Return the id of a document by its id, URL, path or former id, and the fragment of the URL. Raises NotFound.

    A document that the generation shows at the URL comes first, then one that is shown there now, then one that was,
    then one that had this id in the manifest it was imported from.
    """
    from kept.store import documents  # a search does not need it

    if is_id(what.partition("#")[0]):
        return what.partition("#")[0].lower(), get_fragment(what) or None
    if "\0" in what:  # PostgreSQL takes none
        raise NotFound("There is no document of this name. 'kept search' finds what is kept.")
    url, fragment = what.partition("#")[0], get_fragment(what)
    at = to_canonical_url(url)
    if fragment and (route := canonicalize_route_url(what)) != at and route and await documents.past_by_url(db, route):
        at, fragment = route, get_anchor(what) or ""
    found = [*await documents.visible_by_url(db, at), *await documents.past_by_url(db, at)] if at else []
    found = [one for one in found if source in (None, one.source_id)]
    if generation is not None:
        for id in dict.fromkeys(one.document_id for one in found):
            for version in await documents.versions_of(db, id):
                if version.url == at and version.born <= generation < (version.died or generation + 1):
                    return id, fragment or None
    if not found and at and generation is not None:
        found = [one for one in await documents.held_by_url(db, at) if source in (None, one.source_id)]
    if found:
        return found[0].document_id, fragment or None
    former_id = what.encode("utf-8", "replace").decode()  # no database takes a lone surrogate
    if former := await documents.id_by_former_id(db, former_id, source):
        return former, None
    raise NotFound(f"There is no document {what}. 'kept search' finds what is kept.")


def to_canonical_url(text: str) -> str | None:
    """Return the canonical URL of a URL or a path; None where it is neither."""
    try:
        is_url = "://" in text or text.startswith(("npm:/", "pypi:/"))
        return canonicalize_url(text) if is_url else file_url(os.path.abspath(text))
    except ValueError:
        return None


_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None
