"""Writing a file so that a crash leaves the old content or the new one, never a mixture."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from vacancy_agent.store.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path


def private_folder(path: Path) -> None:
    """Make the folder if need be, and readable to the agent's user alone.

    Raises:
        StoreError: it cannot be made, or is no folder.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if sys.platform != "win32" and path.stat().st_mode & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise StoreError.of("make the folder", path, error) from error


def replace_file(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Put `content` at `path` in one step; it is on the disk when this returns.

    Raises:
        StoreError: it could not be written; what was at `path` is still there.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise StoreError.of("write", path, error) from error


def _sync_folder(path: Path) -> None:
    """Put the folder's entry on the disk; Windows has no such call and needs none."""
    if sys.platform != "win32":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
