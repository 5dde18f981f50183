"""Idempotency-Key: the same request again counts once."""

import hashlib
from typing import Annotated

from fastapi import Header
from pydantic import BaseModel

from kept.service.crawls import Once

OnceKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x20-\x7e]+$",
        description="A text of your own. The same request with it again, within a day, is answered with the same job.",
    ),
]


def once(key: str | None, where: str, body: BaseModel) -> Once | None:
    if key is None:
        return None
    said = f"{where} {body.model_dump_json()}"
    return Once(key=key, request=hashlib.sha256(said.encode()).hexdigest())
