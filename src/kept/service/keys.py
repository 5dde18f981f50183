"""Keys: who may ask over the network, and how much each may have. The store knows only their hashes."""

import hashlib
import secrets as chance

from kept.errors import InvalidInput, NotFound
from kept.model.key import ApiKey, KeyScope
from kept.model.root import check_label
from kept.store import keys
from kept.store.database import Database


async def add_key(db: Database, name: str, scope: str) -> tuple[ApiKey, str]:
    """The key, and what its holder has to say: this is the only time that it can be seen."""
    check_label(name)
    if scope not in list(KeyScope):
        raise InvalidInput(f"There is no scope '{scope}'. A key is for {', '.join(KeyScope)}.")
    said = f"kept_{chance.token_urlsafe(32)}"
    async with db.transaction(durable=True) as tx:
        key = await keys.insert(tx, name=name, hash=_hash_token(said), scope=KeyScope(scope))
    if key is None:
        raise InvalidInput(f"There is already a key named '{name}'. Remove it first, or choose another name.")
    return key, said


async def list_keys(db: Database) -> list[ApiKey]:
    async with db.snapshot() as snapshot:
        return await keys.all(snapshot)


async def remove_key(db: Database, name: str) -> None:
    """From now on it opens nothing."""
    async with db.transaction(durable=True) as tx:
        if not await keys.delete(tx, name):
            raise NotFound(f"There is no key named '{name}'. 'kept keys list' shows those there are.")


async def find_key(db: Database, token: str) -> ApiKey | None:
    """The key that somebody says; None if it is none."""
    async with db.snapshot() as snapshot:
        return await keys.by_hash(snapshot, _hash_token(token))


def _hash_token(token: str) -> str:
    """A key is as hard to guess as its hash: nothing slower is needed."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
