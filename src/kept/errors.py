"""The errors that Kept raises.

    KeptError                 its message is shown to the user
    ├── InvalidInput          an argument, a setting or a query is not valid
    ├── NotFound              the named thing does not exist
    ├── AccessDenied          the caller is not authenticated, or lacks the permission
    ├── QuotaExceeded         a quota of the caller is used up
    ├── NeedsDecision         a person has to decide first (held generation, paused or live job)
    ├── SourceUnavailable     the origin as a whole cannot be read: the crawl fails, nothing is deleted
    │   ├── SourceMissing     there is nothing at its root
    │   └── SecretUnavailable a secret that the origin needs is not set
    ├── EmbedderUnavailable   the embedding model is not available; vectors are made later
    ├── TextRejected          the embedding model will never accept this text
    ├── RerankerUnavailable   the reranker is not available; hits stay in their order
    ├── LeaseLost             this worker was replaced, and its writes are refused
    └── StoreError            a database operation failed
        ├── StoreUnreachable  the database does not exist, or does not answer
        ├── StoreFull         the disk is full, or fails
        ├── StoreCorrupt      the file is not a sound database
        ├── StoreTooNew       written by a newer Kept
        └── StoreTooOld       written by a Kept that is too old to be upgraded

A message says what was expected, what was found and what to do next. A missing page or a slow server is not an error
but an outcome: see ``kept.model.frontier.Visit``.
"""


class KeptError(Exception):
    """The base of all errors. The message is shown to the user."""


class InvalidInput(KeptError):
    """An argument, a setting or a query is not valid."""


class NotFound(KeptError):
    """The named thing does not exist."""


class AccessDenied(KeptError):
    """The caller is not authenticated, or lacks the permission."""


class QuotaExceeded(KeptError):
    """A quota of the caller is used up."""


class NeedsDecision(KeptError):
    """A person has to decide before this can go on."""


class SourceUnavailable(KeptError):
    """The origin as a whole cannot be read. The crawl fails; nothing is deleted."""


class SourceMissing(SourceUnavailable):
    """There is nothing at the root."""


class SecretUnavailable(SourceUnavailable):
    """A secret that the origin needs is not set."""


class EmbedderUnavailable(KeptError):
    """The embedding model is not available. Vectors are made later; until then search is lexical."""

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class TextRejected(KeptError):
    """The embedding model does not accept this text, now or later."""


class RerankerUnavailable(KeptError):
    """The reranker is not available. Hits stay in their order."""


class LeaseLost(KeptError):
    """This worker no longer holds its lease of the job. Its transaction is rolled back."""


class StoreError(KeptError):
    """A database operation failed."""


class StoreUnreachable(StoreError):
    """The database does not exist, or does not answer."""


class StoreFull(StoreError):
    """The disk of the database is full, or fails."""


class StoreCorrupt(StoreError):
    """The file is not a sound database."""


class StoreTooNew(StoreError):
    """The database was written by a newer Kept."""


class StoreTooOld(StoreError):
    """The database was written by a Kept that is too old to be upgraded."""
