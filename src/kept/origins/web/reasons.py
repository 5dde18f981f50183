"""Why there is no answer, in words. Never the words of an error: those may hold a request's headers."""

import os
import ssl

from kept.origins.web.deadlines import TimedOut
from kept.origins.web.decoding import Bomb, TooLarge, Undecodable
from kept.origins.web.exchange import Patience, Trouble
from kept.origins.web.gate import Unresolved
from kept.origins.web.upstream import NoTunnel, ProxyAway
from kept.origins.web.wire import CutShort, Dropped, Garbled, HeadTooLong, OnlyInterim


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
        case Unresolved():
            return Trouble.FAILED, "its host name cannot be resolved"
        case ssl.SSLCertVerificationError():
            return Trouble.NEVER, f"its certificate is not trusted ({error.verify_message or type(error).__name__})"
        case ssl.SSLError():
            return Trouble.FAILED, "no secure connection could be made"
        case NoTunnel(status=int(status)):
            return Trouble.FAILED, f"the proxy answered {status}"
        case ProxyAway():
            return Trouble.FAILED, "the proxy cannot be reached"
        case CutShort():
            return Trouble.FAILED, "the answer was cut short"
        case HeadTooLong():
            return Trouble.FAILED, "its headers are too long"
        case OnlyInterim():
            return Trouble.FAILED, "the server sent nothing but interim answers"
        case Garbled():
            return Trouble.FAILED, "not a valid HTTP answer"
        case Dropped() | NoTunnel():
            return Trouble.FAILED, "the connection was closed before an answer came"
        case OSError():
            return Trouble.FAILED, f"no connection: {_system(error)}"
        case _:
            return Trouble.FAILED, f"no valid answer ({type(error).__name__})"


def _system(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
