"""Telling another program something, through the gate: one POST, no redirects, a few seconds."""

from collections.abc import Mapping

from kept.model.url import canonicalize_url
from kept.origins.web.client_factory import default_user_agent, parse_host_port
from kept.origins.web.http.address_policy import parse_endpoint
from kept.origins.web.http.client import HttpClient
from kept.origins.web.http.messages import FailedRequest, HttpResponse, SecretHeaders, Timeouts

WEBHOOK_TIMEOUTS = Timeouts(connect=5.0, read=10.0, total=10.0)


def make_webhook_client(url: str, allowed: str) -> HttpClient:
    """The way out to receivers. Not public, and allowed: the URL ``named``, and ``allowed``, pairs of host:port."""
    target = parse_endpoint(normalize_url(url))
    own = {target.host_port} if target else set()
    return HttpClient(
        allowed=frozenset(own | set(map(parse_host_port, allowed.split()))),
        user_agent=default_user_agent(),
        timeouts=WEBHOOK_TIMEOUTS,
    )


async def post_webhook(client: HttpClient, url: str, body: bytes, headers: Mapping[str, str]) -> str | None:
    """Why it was not taken; None: it was."""
    answer = await client.request(
        normalize_url(url), max_bytes=0, headers=headers, body=body, wants_body=lambda status, headers: False
    )
    if isinstance(answer, FailedRequest):
        return answer.reason
    return None if 200 <= answer.status < 300 else f"answered {answer.status}"


def normalize_url(url: str) -> str:
    """As it was typed, if that can be asked: a receiver's query may hold what a page's would not."""
    return url if parse_endpoint(url) else canonicalize_url(url) or url


# Asking a model ------------------------------------------------------------------------------------------------

MODEL_TIMEOUTS = Timeouts(connect=10.0, read=60.0, total=60.0)
MAX_MODEL_RESPONSE_BYTES = 256 * 1024 * 1024  # of an answer; a number takes about twenty


def make_model_client(url: str, key: str) -> HttpClient:
    """The way out to the operator's own embedder or reranker, public or not, and to nobody else that is not public."""
    target = parse_endpoint(normalize_url(url))
    headers = (("Authorization", f"Bearer {key}"),) if key else ()
    return HttpClient(
        allowed=frozenset({target.host_port} if target else ()),
        user_agent=default_user_agent(),
        secret_headers=SecretHeaders(target, headers),
        timeouts=MODEL_TIMEOUTS,
    )


async def post_to_model(client: HttpClient, url: str, body: bytes, seconds: float) -> HttpResponse | FailedRequest:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    return await client.request(
        normalize_url(url), max_bytes=MAX_MODEL_RESPONSE_BYTES, headers=headers, body=body, seconds=seconds
    )
