"""The HTTP client of crawls, webhooks and models, a package of its own. Why it is our own: decision 23.

Its interface is ``client.HttpClient``: ``request``, ``get_following_redirects``, ``connect``, ``probe`` and ``close``.
Requests and responses are the values in ``messages``; a failed request is a value too (``FailedRequest``), not an
exception. The address policy (``address_policy``) holds for every connection, and nothing in here knows of crawls.

    client           one client per source: checks, dials, sends
    messages         headers, timeouts, responses, failures
    address_policy   which addresses may be dialled; public_addresses: which are public
    pool             idle connections of one host
    connection       one HTTP/1.1 connection on asyncio and httptools
    decoding         gzip, deflate, Brotli and Zstandard with limits
    timeouts         deadlines of requests
    upstream_proxy   HTTP proxies
    error_text       reasons for people, without secrets
"""
