"""Describes failed requests. An exception's own text is never used: it may hold request headers, and so secrets."""

import os
import ssl

from kept.origins.web.http.address_policy import HostNotResolved
from kept.origins.web.http.connection import (
    ConnectionDropped,
    HeadersTooLarge,
    InvalidResponse,
    TooManyInterimResponses,
    TruncatedBody,
)
from kept.origins.web.http.decoding import BodyTooLarge, DecompressionBomb, UndecodableBody
from kept.origins.web.http.messages import FailureKind, Timeouts
from kept.origins.web.http.timeouts import RequestTimedOut
from kept.origins.web.http.upstream_proxy import ProxyUnreachable, TunnelRefused


def classify_body_error(
    error: DecompressionBomb | BodyTooLarge | UndecodableBody, max_bytes: int
) -> tuple[FailureKind, str]:
    """Return the failure of a body that was received and cannot be used."""
    match error:
        case BodyTooLarge():
            return FailureKind.TOO_LARGE, f"larger than {max_bytes:,} bytes"
        case DecompressionBomb():
            return FailureKind.DECOMPRESSION_BOMB, str(error)
        case UndecodableBody():
            return FailureKind.TEMPORARY, f"cannot be unpacked: {error}"


def classify_request_error(error: Exception, timeouts: Timeouts) -> tuple[FailureKind, str]:
    """Return the failure of a request without a response."""
    match error:
        case RequestTimedOut():
            return FailureKind.TEMPORARY, str(error)
        case TimeoutError():
            return FailureKind.TEMPORARY, f"no connection within {timeouts.connect:g} s"
        case HostNotResolved():
            return FailureKind.TEMPORARY, "its host name cannot be resolved"
        case ssl.SSLCertVerificationError():
            return (
                FailureKind.PERMANENT,
                f"its certificate is not trusted ({error.verify_message or type(error).__name__})",
            )
        case ssl.SSLError():
            return FailureKind.TEMPORARY, "no secure connection could be made"
        case TunnelRefused(status=int(status)):
            return FailureKind.TEMPORARY, f"the proxy answered {status}"
        case ProxyUnreachable():
            return FailureKind.TEMPORARY, "the proxy cannot be reached"
        case TruncatedBody():
            return FailureKind.TEMPORARY, "the answer was cut short"
        case HeadersTooLarge():
            return FailureKind.TEMPORARY, "its headers are too long"
        case TooManyInterimResponses():
            return FailureKind.TEMPORARY, "the server sent nothing but interim answers"
        case InvalidResponse():
            return FailureKind.TEMPORARY, "not a valid HTTP answer"
        case ConnectionDropped() | TunnelRefused():
            return FailureKind.TEMPORARY, "the connection was closed before an answer came"
        case OSError():
            return FailureKind.TEMPORARY, f"no connection: {_system_message(error)}"
        case _:
            return FailureKind.TEMPORARY, f"no valid answer ({type(error).__name__})"


def _system_message(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
