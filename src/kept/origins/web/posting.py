"""Telling another program something, through the gate: one POST, no redirects, a few seconds."""

from collections.abc import Mapping

from kept.model.url import canonical
from kept.origins.web.building import pair_of, user_agent
from kept.origins.web.egress import Egress
from kept.origins.web.exchange import Answer, NoAnswer, Patience, Secrets
from kept.origins.web.gate import target_of

PATIENCE = Patience(connect=5.0, first_byte=10.0, whole=10.0)


def posting_egress(named: str, allowed: str) -> Egress:
    """The way out to receivers. Not public, and allowed: the URL ``named``, and ``allowed``, pairs of host:port."""
    target = target_of(spelled(named))
    own = {target.pair} if target else set()
    return Egress(
        allowed=frozenset(own | set(map(pair_of, allowed.split()))), user_agent=user_agent(), patience=PATIENCE
    )


async def post(egress: Egress, url: str, body: bytes, headers: Mapping[str, str]) -> str | None:
    """Why it was not taken; None: it was."""
    answer = await egress.ask(spelled(url), most=0, headers=headers, body=body, wanted=lambda status, headers: False)
    if isinstance(answer, NoAnswer):
        return answer.reason
    return None if 200 <= answer.status < 300 else f"answered {answer.status}"


def spelled(url: str) -> str:
    """As it was typed, if that can be asked: a receiver's query may hold what a page's would not."""
    return url if target_of(url) else canonical(url) or url


# Asking a model ------------------------------------------------------------------------------------------------

MODEL_PATIENCE = Patience(connect=10.0, first_byte=60.0, whole=60.0)
MOST_BYTES = 256 * 1024 * 1024  # of an answer; a number takes about twenty


def model_egress(url: str, key: str) -> Egress:
    """The way out to the operator's own embedder or reranker, public or not, and to nobody else that is not public."""
    target = target_of(spelled(url))
    headers = (("Authorization", f"Bearer {key}"),) if key else ()
    return Egress(
        allowed=frozenset({target.pair} if target else ()),
        user_agent=user_agent(),
        secrets=Secrets(target, headers),
        patience=MODEL_PATIENCE,
    )


async def ask_model(egress: Egress, url: str, body: bytes, seconds: float) -> Answer | NoAnswer:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    return await egress.ask(spelled(url), most=MOST_BYTES, headers=headers, body=body, seconds=seconds)
