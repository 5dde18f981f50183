"""The file of a SQLite database: whether it is still the one that was opened.

SQLite goes on with the file it has open even if that was deleted or replaced, and says that it committed. Every
transaction therefore looks at the path first, and again when it commits.
"""

import os
import struct
import time

from kept.errors import StoreCorrupt, StoreUnreachable
from kept.log import Log

log = Log(__name__)

FileIdentity = tuple[int, int]  # device and inode

_MAGIC = b"SQLite format 3\0"
_CHECKPOINT_SECONDS = 0.5  # a checkpoint writes the first page before those that make the file longer


class DatabaseFile:
    """The file at one path. Problems, and their end, are logged once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.verified: FileIdentity | None = None  # of the file whose schema is known
        self._size = 0
        self._problem = ""

    def identify(self) -> FileIdentity:
        """Return the identity of the file that is there now. Raises StoreUnreachable or StoreCorrupt.

        Until it has been opened, it may become shorter: what a killed process left half-way is then rolled back.
        """
        try:
            status = os.stat(self.path)
        except OSError as error:
            self._note(f"it is not there ({error.strerror})")
            raise StoreUnreachable(
                f"The database file {self.path} was deleted or moved while it was open. Put it back, or 'kept restore' "
                "a backup."
            ) from None
        identity = (status.st_dev, status.st_ino)
        if identity == self.verified and status.st_size < self._size and not self._is_whole():
            self._note("it was truncated")
            raise StoreCorrupt(
                f"The database file {self.path} was truncated while it was open. 'kept restore' a backup."
            )
        self._size = status.st_size
        self._note("")
        return identity

    def require(self, identity: FileIdentity) -> None:
        """Raise StoreUnreachable unless the file is still the same."""
        if self.identify() != identity:
            self._note("it was replaced")
            raise StoreUnreachable(
                f"The database file {self.path} was replaced while it was written to. The new one has nothing of it."
            )

    def _is_whole(self) -> bool:
        """Whether the file is as long as its header says."""
        deadline = time.monotonic() + _CHECKPOINT_SECONDS
        while True:
            try:
                with open(self.path, "rb") as file:
                    header = file.read(100)
                    size = os.fstat(file.fileno()).st_size
            except OSError:
                return False
            if len(header) == 100 and header.startswith(_MAGIC):
                page_size, pages = struct.unpack(">H", header[16:18])[0], struct.unpack(">I", header[28:32])[0]
                if size >= (65536 if page_size == 1 else page_size) * pages:
                    return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)

    def _note(self, problem: str) -> None:
        if problem and not self._problem:
            log.warning("database file lost", path=self.path, reason=problem)
        elif self._problem and not problem:
            log.warning("database file back", path=self.path)
        self._problem = problem
