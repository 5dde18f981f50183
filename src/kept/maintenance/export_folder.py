"""Reads the files of an export that is not trusted.

A path is opened component by component, and none of them may be a link: a link named ``content.md`` could lead to any
file that the importing user may read.
"""

import errno
import os
import stat
from pathlib import Path

from kept.errors import InvalidInput

MAX_FILE_BYTES = 256 * 1024 * 1024  # of one version; a document is at most 32 MB before it is read


class ExportFolder:
    """The folder of a manifest. Its own path may contain links: the user typed it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self, *parts: str) -> bool:
        """Whether there is a file. Raises InvalidInput as ``read`` does."""
        file = self._open(parts)
        if file is not None:
            os.close(file)
        return file is not None

    def read(self, *parts: str, limit: int | None = MAX_FILE_BYTES) -> bytes | None:
        """Return the content of a file; None if it is missing or cannot be read, or is larger than the limit.

        Raises InvalidInput if a part of the path is a link, or if it is no regular file.
        """
        descriptor = self._open(parts)
        if descriptor is None:
            return None
        with open(descriptor, "rb") as file:
            if limit is not None and os.fstat(descriptor).st_size > limit:
                return None
            content = file.read(-1 if limit is None else limit + 1)
        return content if limit is None or len(content) <= limit else None

    def _open(self, parts: tuple[str, ...]) -> int | None:
        opened = [os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        try:
            for number, part in enumerate(parts, 1):
                is_last = number == len(parts)
                # Without O_NONBLOCK a FIFO would wait for a writer.
                flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_NONBLOCK if is_last else os.O_DIRECTORY)
                opened.append(self._open_part(opened[-1], part, flags, "/".join(parts[:number])))
                is_file = stat.S_ISREG(os.fstat(opened[-1]).st_mode)
                if is_last and not is_file:
                    raise InvalidInput(f"{self.path / Path(*parts)} is not a regular file. Nothing was imported.")
            return opened.pop()
        except (FileNotFoundError, PermissionError):
            return None
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _open_part(self, folder: int, part: str, flags: int, place: str) -> int:
        try:
            return os.open(part, flags, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                is_link = stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode)
                what = "is a symbolic link, which an import does not follow" if is_link else "is not a folder"
                raise InvalidInput(f"{self.path / place} {what}. Nothing was imported.") from None
            if error.errno in (errno.ENXIO, errno.ENAMETOOLONG, errno.EINVAL):  # a socket; an impossible name
                return self._refuse(place)
            raise

    def _refuse(self, place: str) -> int:
        raise InvalidInput(f"{self.path / place} cannot be a file of an export. Nothing was imported.")
