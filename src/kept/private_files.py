"""Files and folders that only their owner may read, whatever the umask. What exists already keeps its mode."""

import os
from pathlib import Path

PRIVATE_FILE_MODE, PRIVATE_FOLDER_MODE = 0o600, 0o700


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents. ``Path.mkdir`` gives its mode to the last one only."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(PRIVATE_FOLDER_MODE, exist_ok=True)
        one.chmod(PRIVATE_FOLDER_MODE)


def create_private_file(file: Path | str, mode: int = PRIVATE_FILE_MODE) -> None:
    """Create an empty file. Raises FileExistsError if there is one, or a link."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
