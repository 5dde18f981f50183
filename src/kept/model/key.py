"""API keys and their scopes."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class KeyScope(StrEnum):
    """The permissions of a key. Each scope includes those before it."""

    READ = "read"  # search and read
    WRITE = "write"  # add, change and remove sources, request and control crawls, within quotas
    ADMIN = "admin"  # the same without quotas and rate limits

    def allows(self, required: "KeyScope") -> bool:
        order = list(KeyScope)
        return order.index(self) >= order.index(required)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    name: str
    scope: KeyScope
    created_at: datetime
