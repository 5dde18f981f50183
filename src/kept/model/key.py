"""A key: who asks over the network, and what they may."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class KeyScope(StrEnum):
    """What a key opens; each opens what those before it do."""

    READ = "read"  # search, read, look
    WRITE = "write"  # add, change and remove sources, ask for crawls and steer them, within quotas
    ADMIN = "admin"  # the same without quotas and rates

    def allows(self, wanted: "KeyScope") -> bool:
        order = list(KeyScope)
        return order.index(self) >= order.index(wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    name: str
    scope: KeyScope
    created_at: datetime
