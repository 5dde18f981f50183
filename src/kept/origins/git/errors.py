"""What git's complaints mean for the person who asked, and what to do next. Pure."""

import re
from enum import Enum, auto

from kept.errors import SourceMissing, SourceUnavailable


class GitErrorKind(Enum):
    NOT_FOUND = auto()  # there is no such repository
    AUTHENTICATION = auto()  # it wants to know who asks
    OTHER = auto()  # of the network, or of the server
    UNKNOWN = auto()  # perhaps of our own copy


_ERROR_PATTERNS = (
    # The first that is found decides.
    (
        GitErrorKind.AUTHENTICATION,
        r"Permission denied \(publickey",
        "does not let this key in. Check that ssh gets there with it",
    ),
    (
        GitErrorKind.AUTHENTICATION,
        r"Permission denied",
        "does not let us in. Check that ssh gets there without a password",
    ),
    (GitErrorKind.OTHER, r"Host key verification failed", "is not known to ssh. Connect to it once with ssh"),
    (
        GitErrorKind.NOT_FOUND,
        r"[Rr]epository\b.* not found|not found: did you run|No such repository|returned error: 404"
        r"|could not be found or you don't have permission|repository not exported",
        "is not there, or only for those who log in. Check the address, or give a token: "
        "--header 'Authorization: Bearer env:TOKEN'",
    ),
    (
        GitErrorKind.AUTHENTICATION,
        r"Authentication failed|could not read (?:Username|Password)|terminal prompts disabled|returned error: 40[13]"
        r"|HTTP Basic: Access denied|Invalid username or (?:password|token)",
        "wants another login. Give a token that may read it: --header 'Authorization: Bearer env:TOKEN'",
    ),
    (GitErrorKind.OTHER, r"not our ref|unadvertised object", "has no such commit. Check it, or name a branch or a tag"),
    (
        GitErrorKind.OTHER,
        r"dumb http transport|Dumb HTTP",
        "is served without git's own protocol ('dumb HTTP'), which cannot be asked for a part. "
        "Clone it, and keep the folder instead",
    ),
    (
        GitErrorKind.NOT_FOUND,
        r"does not appear to be a git repository|is this a git repository|not a git repository|invalid server response",
        "is no git repository. Check the address; a web page has to be named as one (as: web)",
    ),
    (
        GitErrorKind.OTHER,
        r"returned error: 30\d|unable to update url base from redirection",
        "has moved. Open it in a browser, and add it by the address that is shown there",
    ),
    (GitErrorKind.OTHER, r"transport '?\w+'? not allowed", "is asked for by a protocol that was not named"),
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
    (GitErrorKind.OTHER, r"No space left|[Qq]uota exceeded|Disk full", "does not fit: the disk is full"),
)


def classify_git_error(message: str) -> tuple[GitErrorKind, str]:
    """What kind of trouble a complaint of git's tells of, and what to say about the repository."""
    for trouble, sign, sentence in _ERROR_PATTERNS:
        if re.search(sign, message):
            return trouble, sentence
    last = re.findall(r"(?:fatal|error): (.+)", message)
    return (
        GitErrorKind.UNKNOWN,
        f"cannot be read ({' '.join(last[-1].split())[:160] if last else 'git says nothing more'})",
    )


def make_source_error(remote: str, message: str) -> SourceUnavailable:
    trouble, sentence = classify_git_error(message)
    kind = SourceMissing if trouble is GitErrorKind.NOT_FOUND else SourceUnavailable
    return kind(f"{remote} {sentence}.")
