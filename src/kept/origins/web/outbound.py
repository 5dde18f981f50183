"""POST requests to webhook receivers and model servers, through the same HTTP client as crawls. No redirects."""

from collections.abc import Mapping

from kept.model.authority import WebhookReach
from kept.model.url import canonicalize_url
from kept.origins.web.client_factory import default_user_agent, parse_host_port
from kept.origins.web.http.address_policy import configured_classes, parse_endpoint
from kept.origins.web.http.client import HttpClient
from kept.origins.web.http.messages import FailedRequest, HttpResponse, SecretHeaders, Timeouts

WEBHOOK_TIMEOUTS = Timeouts(connect=5.0, read=10.0, total=10.0)


class WebhookClients:
    """Sends webhooks, with a client for each reach: what the operator may name, a caller may not."""

    def __init__(self, operator_url: str, allowed: str) -> None:
        self._operator_url = operator_url
        self._allowed = allowed
        self._clients: dict[WebhookReach, HttpClient] = {}

    async def send(self, url: str, body: bytes, headers: Mapping[str, str], reach: WebhookReach) -> str | None:
        """Deliver a webhook. Returns why that failed; None on success."""
        if reach not in self._clients:
            own = self._operator_url if reach is WebhookReach.OPERATOR else ""
            self._clients[reach] = make_webhook_client(own, "" if reach is WebhookReach.PUBLIC else self._allowed)
        return await post_webhook(self._clients[reach], url, body, headers)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()


def make_webhook_client(url: str, allowed: str) -> HttpClient:
    """Build a client for webhooks. Non-public addresses are reached only as the URL's own or ``allowed``."""
    endpoint = parse_endpoint(normalize_url(url))
    own = {endpoint.host_port} if endpoint else set()
    hosts = own | set(map(parse_host_port, allowed.split()))
    return HttpClient(
        allowed={host_port: configured_classes(host_port[0]) for host_port in hosts},
        user_agent=default_user_agent(),
        timeouts=WEBHOOK_TIMEOUTS,
    )


async def post_webhook(client: HttpClient, url: str, body: bytes, headers: Mapping[str, str]) -> str | None:
    """Deliver a webhook. Returns why that failed; None on success."""
    response = await client.request(
        normalize_url(url), max_bytes=0, headers=headers, body=body, wants_body=lambda status, headers: False
    )
    if isinstance(response, FailedRequest):
        return response.reason
    return None if 200 <= response.status < 300 else f"answered {response.status}"


def normalize_url(url: str) -> str:
    """Return a URL as it was typed if it is valid: canonical form could change a receiver's query."""
    return url if parse_endpoint(url) else canonicalize_url(url) or url


# Model servers -------------------------------------------------------------------------------------------------

MODEL_TIMEOUTS = Timeouts(connect=10.0, read=60.0, total=60.0)
MAX_MODEL_RESPONSE_BYTES = 256 * 1024 * 1024  # a number takes about twenty


def make_model_client(url: str, key: str) -> HttpClient:
    """Build the client for the operator's embedder or reranker, whose address need not be public."""
    endpoint = parse_endpoint(normalize_url(url))
    headers = (("Authorization", f"Bearer {key}"),) if key else ()
    return HttpClient(
        allowed={endpoint.host_port: configured_classes(endpoint.host)} if endpoint else None,
        user_agent=default_user_agent(),
        secret_headers=SecretHeaders(endpoint, headers),
        timeouts=MODEL_TIMEOUTS,
    )


async def post_to_model(client: HttpClient, url: str, body: bytes, seconds: float) -> HttpResponse | FailedRequest:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    return await client.request(
        normalize_url(url), max_bytes=MAX_MODEL_RESPONSE_BYTES, headers=headers, body=body, seconds=seconds
    )
