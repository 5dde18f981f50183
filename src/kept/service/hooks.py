"""Hooks: signed requests of other programs for a refresh."""

import hashlib
import hmac
from collections.abc import Callable

from kept.errors import AccessDenied, KeptError
from kept.model.job import CrawlJob
from kept.service import jobs
from kept.service.lookup import find_source
from kept.store.database import Database


async def receive_hook(
    db: Database, label: str, body: bytes, signature: str, look_up: Callable[[str], str], *, enqueue: bool = True
) -> CrawlJob | None:
    """Enqueue the crawl that a signed hook requests. Raises AccessDenied for a wrong signature or an unknown source.

    ``signature``: ``sha256=`` and the HMAC-SHA256 of the body by the secret of the source, in hexadecimal digits.
    """
    secret = await _hook_secret(db, label, look_up)
    expected = f"sha256={hmac.digest(secret.encode(), body, hashlib.sha256).hex()}"
    right = hmac.compare_digest(expected.encode(), signature.strip().lower().encode("utf-8", "replace"))
    if not secret or not right:
        raise AccessDenied(
            "The signature is not that of a source with a hook. 'kept set NAME --hook-secret' gives a source one."
        )
    return await jobs.request_crawl(db, label) if enqueue else None


async def _hook_secret(db: Database, label: str, look_up: Callable[[str], str]) -> str:
    """Return the secret of a source, empty where there is none: callers cannot find out which sources exist."""
    try:
        async with db.snapshot() as snapshot:
            return look_up((await find_source(snapshot, label)).settings.hook_secret)
    except KeptError:
        return ""
