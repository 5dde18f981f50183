"""Idempotency-Key: the same request again counts once."""

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
        description="A text of your own. The same request with it again, within a day, is answered with the same job.",
    ),
]


def build_idempotency_key(key: str | None, endpoint: str, body: BaseModel) -> IdempotencyKey | None:
    if key is None:
        return None
    said = f"{endpoint} {body.model_dump_json()}"
    return IdempotencyKey(key=key, request_hash=hashlib.sha256(said.encode()).hexdigest())
