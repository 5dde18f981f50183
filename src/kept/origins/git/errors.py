"""Translates git's error messages into a sentence that says what to do next. Pure."""

import re
from enum import Enum, auto

from kept.errors import SourceMissing, SourceUnavailable


class GitErrorKind(Enum):
    NOT_FOUND = auto()  # no such repository
    AUTHENTICATION = auto()  # a login is needed
    OTHER = auto()  # the network or the server
    UNKNOWN = auto()  # perhaps a damaged clone


_ERROR_PATTERNS = (
    # The first match decides.
    (
        GitErrorKind.AUTHENTICATION,
        r"Permission denied \(publickey",
        "refuses this SSH key. Check that ssh can connect with it",
    ),
    (
        GitErrorKind.AUTHENTICATION,
        r"Permission denied",
        "refuses the SSH login. Check that ssh can connect without a password",
    ),
    (GitErrorKind.OTHER, r"Host key verification failed", "is not known to ssh. Connect to it once with ssh"),
    (
        GitErrorKind.NOT_FOUND,
        r"[Rr]epository\b.* not found|not found: did you run|No such repository|returned error: 404"
        r"|could not be found or you don't have permission|repository not exported",
        "does not exist, or requires a login. Check the address, or give a token: "
        "--header 'Authorization: Bearer env:TOKEN'",
    ),
    (
        GitErrorKind.AUTHENTICATION,
        r"Authentication failed|could not read (?:Username|Password)|terminal prompts disabled|returned error: 40[13]"
        r"|HTTP Basic: Access denied|Invalid username or (?:password|token)",
        "requires another login. Give a token that may read it: --header 'Authorization: Bearer env:TOKEN'",
    ),
    (GitErrorKind.OTHER, r"not our ref|unadvertised object", "has no such commit. Check it, or name a branch or a tag"),
    (
        GitErrorKind.OTHER,
        r"dumb http transport|Dumb HTTP",
        "is served without git's own protocol ('dumb HTTP'), which cannot serve single commits. "
        "Clone it, and keep the folder instead",
    ),
    (
        GitErrorKind.NOT_FOUND,
        r"does not appear to be a git repository|is this a git repository|not a git repository|invalid server response",
        "is not a git repository. Check the address; for a web page say so (as: web)",
    ),
    (
        GitErrorKind.OTHER,
        r"returned error: 30\d|unable to update url base from redirection",
        "has moved. Open it in a browser, and add it by the address that is shown there",
    ),
    (GitErrorKind.OTHER, r"transport '?\w+'? not allowed", "uses a protocol that is not allowed"),
    (GitErrorKind.OTHER, r"[Cc]ould not resolve host", "cannot be reached: its host name cannot be resolved"),
    (
        GitErrorKind.OTHER,
        r"code (?:403|502|504) from proxy|returned error: 50[24]",
        "cannot be reached. Try again later",
    ),
    (
        GitErrorKind.OTHER,
        r"Connection refused|Failed to connect|unable to connect|[Tt]imed? ?out|took longer|Could not read from remote"
        r"|early EOF|hung up|RPC failed|curl \d+|Connection (?:closed|reset)|SSL|certificate|returned error: 5\d\d"
        r"|unexpected disconnect|too slow",
        "cannot be reached now. Try again later",
    ),
    (GitErrorKind.OTHER, r"No space left|[Qq]uota exceeded|Disk full", "cannot be stored: the disk is full"),
)


def classify_git_error(message: str) -> tuple[GitErrorKind, str]:
    """Return the kind of a git error, and a predicate about the repository ("cannot be reached now. Try …")."""
    for kind, pattern, sentence in _ERROR_PATTERNS:
        if re.search(pattern, message):
            return kind, sentence
    last = re.findall(r"(?:fatal|error): (.+)", message)
    return (
        GitErrorKind.UNKNOWN,
        f"cannot be read ({' '.join(last[-1].split())[:160] if last else 'git gave no reason'})",
    )


def make_source_error(remote: str, message: str) -> SourceUnavailable:
    kind, sentence = classify_git_error(message)
    error_type = SourceMissing if kind is GitErrorKind.NOT_FOUND else SourceUnavailable
    return error_type(f"{remote} {sentence}.")
