"""A host's budget, shared through the database by all who walk there, in whichever process.

Each place keeps a share, renewed about once a second. A share only grows into what nobody else holds, and shrinks no
faster than the requests under way end: together they never ask more than the budget. One that is not renewed lapses,
first for its holder, then for the others.
"""

from collections.abc import Sequence

from kept.errors import LeaseLost
from kept.origins.origin import Share
from kept.store import hosts
from kept.store.database import Database
from kept.store.hosts import HostShare
from kept.store.jobs import Place

VALID_SECONDS = 6.0  # for its holder
LAPSE_SECONDS = 10.0  # for the others: later, by more than a request takes to begin


async def share(db: Database, place: Place, host: str, at_once: int, busy: int) -> Share:
    """What this place may ask of a host now. ``at_once``: what its source would have; ``busy``: what is under way."""
    async with db.transaction() as tx:
        await hosts.lock(tx, host)
        others = await hosts.shares(tx, host, lapse=LAPSE_SECONDS)
        slots, walkers = divide(others, place.id, at_once)
        # Others may not have what is still in use here, though it will not be used again.
        if not await hosts.keep(tx, host, HostShare(place_id=place.id, at_once=at_once, slots=max(slots, busy))):
            raise LeaseLost("This worker was taken for dead and replaced; it asks for nothing more.")
    return Share(slots=slots, walkers=walkers, seconds=VALID_SECONDS)


def divide(shares: Sequence[HostShare], place: str, at_once: int) -> tuple[int, int]:
    """This place's slots, and how many share the host. In equal parts; what is left over goes to the oldest.

    ``shares``: as they are held now, the oldest first. The budget is what the gentlest of them would have.
    """
    order = [one.place_id for one in shares]
    order += [] if place in order else [place]
    others = [one for one in shares if one.place_id != place]
    budget = min([at_once, *(one.at_once for one in others)])
    part, left = divmod(budget, len(order))
    fair = part + (order.index(place) < left)
    free = max(0, budget - sum(one.slots for one in others))
    return min(fair, free), len(order)
