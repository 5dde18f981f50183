"""Why there is no answer, in words. Never the words of an error: those may hold a request's headers."""

import os

import aiohttp
from aiohttp.http_exceptions import LineTooLong

from kept.origins.web.deadlines import TimedOut
from kept.origins.web.decoding import Bomb, TooLarge, Undecodable
from kept.origins.web.exchange import Patience, Trouble


def of_unpacking(error: Bomb | TooLarge | Undecodable, most: int) -> tuple[Trouble, str]:
    """Of a body that came, and cannot be had."""
    match error:
        case TooLarge():
            return Trouble.TOO_LARGE, f"larger than {most:,} bytes"
        case Bomb():
            return Trouble.BOMB, str(error)
        case Undecodable():
            return Trouble.FAILED, f"cannot be unpacked: {error}"


def of_asking(error: Exception, patience: Patience) -> tuple[Trouble, str]:
    """Of a request that nothing came of."""
    match error:
        case TimedOut():
            return Trouble.FAILED, str(error)
        case TimeoutError():
            return Trouble.FAILED, f"no connection within {patience.connect:g} s"
        case aiohttp.ClientConnectorDNSError():
            return Trouble.FAILED, "its host name cannot be resolved"
        case aiohttp.ClientConnectorCertificateError():
            return Trouble.NEVER, f"its certificate is not trusted ({_certificate(error.certificate_error)})"
        case aiohttp.ClientSSLError():
            return Trouble.FAILED, "no secure connection could be made"
        case aiohttp.ClientHttpProxyError():
            return Trouble.FAILED, f"the proxy answered {error.status}"
        case aiohttp.ClientProxyConnectionError():
            return Trouble.FAILED, "the proxy cannot be reached"
        case aiohttp.ClientConnectorError():
            return Trouble.FAILED, f"no connection: {_system(error.os_error)}"
        case aiohttp.ClientPayloadError():
            return Trouble.FAILED, "the answer was cut short"
        case aiohttp.ClientResponseError():
            return Trouble.FAILED, "its headers are too long" if _is_too_long(error) else "not a valid HTTP answer"
        case aiohttp.InvalidURL():
            return Trouble.NEVER, "not a web address that can be asked"
        case aiohttp.ClientOSError() | aiohttp.ServerDisconnectedError():
            return Trouble.FAILED, "the connection was closed before an answer came"
        case OSError():
            return Trouble.FAILED, f"no connection: {_system(error)}"
        case _:
            return Trouble.FAILED, f"no valid answer ({type(error).__name__})"


def _system(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error) or type(error).__name__


def _certificate(error: Exception) -> str:
    return getattr(error, "verify_message", "") or type(error).__name__


def _is_too_long(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, LineTooLong) or "too many headers" in str(error).lower():
            return True
        error = error.__cause__
    return False
