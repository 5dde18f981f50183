"""API keys of the server. Only their hashes are stored."""

import hashlib
import secrets as chance

from kept.errors import InvalidInput, NotFound
from kept.model.key import ApiKey, KeyScope
from kept.model.root import check_label
from kept.store import keys
from kept.store.database import Database


async def add_key(db: Database, name: str, scope: str) -> tuple[ApiKey, str]:
    """Create a key. Returns it with its token, which is not stored and cannot be shown again. Raises InvalidInput."""
    check_label(name)
    if scope not in list(KeyScope):
        raise InvalidInput(f"There is no scope '{scope}'. A key is for {', '.join(KeyScope)}.")
    token = f"kept_{chance.token_urlsafe(32)}"
    async with db.transaction(durable=True) as tx:
        key = await keys.insert(tx, name=name, hash=_hash_token(token), scope=KeyScope(scope))
    if key is None:
        raise InvalidInput(f"There is already a key named '{name}'. Remove it first, or choose another name.")
    return key, token


async def list_keys(db: Database) -> list[ApiKey]:
    async with db.snapshot() as snapshot:
        return await keys.all(snapshot)


async def remove_key(db: Database, name: str) -> None:
    """Delete a key. Raises NotFound."""
    async with db.transaction(durable=True) as tx:
        if not await keys.delete(tx, name):
            raise NotFound(f"There is no key named '{name}'. 'kept keys list' shows those there are.")


async def find_key(db: Database, token: str) -> ApiKey | None:
    """Return the key with this token; None where there is none."""
    async with db.snapshot() as snapshot:
        return await keys.by_hash(snapshot, _hash_token(token))


def _hash_token(token: str) -> str:
    """Hash a token. Tokens are random and long: a slow hash is not needed."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
