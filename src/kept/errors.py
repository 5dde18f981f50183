"""Everything Kept raises on purpose.

    KeptError                 the sentence is meant for the person who called
    ├── WrongCall             the call itself is wrong: an argument, a setting, a query
    ├── NoSuchThing           what was named is not there
    ├── NotAllowed            the caller is not known, or may not do this
    ├── LimitReached          the caller has as much as they may have: later, or after giving something up
    ├── NeedsDecision         a person has to decide first (held, paused, live job)
    ├── SourceUnavailable     the origin as a whole cannot be read: the crawl fails, nothing is deleted
    │   ├── SourceMissing     there is nothing at its root
    │   └── SecretUnavailable a value that its site has to be told cannot be had
    ├── EmbedderUnavailable   what makes vectors does not answer; they are made later
    ├── TextRefused           what makes vectors will never make one for this text
    ├── RerankerUnavailable   what takes a second look at hits does not answer; they stay in their order
    ├── LeaseLost             this worker was replaced; whatever it was about to write is refused
    └── StoreError            the database cannot do what was asked
        ├── StoreUnreachable  not there, or not answering
        ├── StoreFull         no room left, or the disk answers with errors
        ├── StoreDamaged      the file is not a sound database
        └── StoreTooNew       written by a newer Kept

Each error says what was expected, what was found and what to do next. A missing page or a slow server
is everyday life, not an error: see ``kept.model.frontier.Visit``.
"""


class KeptError(Exception):
    """The sentence is meant for the person who called."""


class InvalidInput(KeptError):
    """The call itself is wrong."""


class NotFound(KeptError):
    """What was named is not there."""


class AccessDenied(KeptError):
    """The caller is not known, or may not do this."""


class QuotaExceeded(KeptError):
    """The caller has as much as they may have."""


class NeedsDecision(KeptError):
    """A person has to decide before this can go on."""


class SourceUnavailable(KeptError):
    """The origin as a whole cannot be read. The crawl fails; nothing is deleted."""


class SourceMissing(SourceUnavailable):
    """There is nothing at the root."""


class SecretUnavailable(SourceUnavailable):
    """A value that the site has to be told cannot be had."""


class EmbedderUnavailable(KeptError):
    """What makes vectors does not answer. They are made later; until then words alone find the sections."""

    def __init__(self, sentence: str, *, retry_after: float = 0.0) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after  # seconds


class TextRejected(KeptError):
    """What makes vectors does not take this text, now or later."""


class RerankerUnavailable(KeptError):
    """What takes a second look at hits does not answer. They stay in the order they were found in."""


class LeaseLost(KeptError):
    """This worker no longer holds its place in the job. Nothing it was about to write is written."""


class StoreError(KeptError):
    """The database cannot do what was asked."""


class StoreUnreachable(StoreError):
    """The database is not there, or does not answer."""


class StoreFull(StoreError):
    """There is no room left for the database, or its disk answers with errors."""


class StoreCorrupt(StoreError):
    """The file is not a sound database."""


class StoreTooNew(StoreError):
    """The database was written by a newer Kept."""


class StoreTooOld(StoreError):
    """The database was written by a Kept that is too old to be upgraded."""
