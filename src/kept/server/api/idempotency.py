"""The Idempotency-Key header: a repeated request counts once."""

import hashlib
from typing import Annotated

from fastapi import Header
from pydantic import BaseModel

from kept.service.jobs import IdempotencyKey

IdempotencyKeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x20-\x7e]+$",
        description="Any text. The same request with the same key, within a day, returns the same job.",
    ),
]


def build_idempotency_key(key: str | None, endpoint: str, body: BaseModel) -> IdempotencyKey | None:
    if key is None:
        return None
    content = f"{endpoint} {body.model_dump_json()}"
    return IdempotencyKey(key=key, request_hash=hashlib.sha256(content.encode()).hexdigest())
