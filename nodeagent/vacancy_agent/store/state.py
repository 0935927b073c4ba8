"""The state directory: who may read it, what is where.

lock             one agent at a time
holds/           the hold journal, a file per upstream
vacancy.sqlite3  switches, usage
last-good.json   the configuration that was applied last
tokens.json      an agent that runs alone: {"borrow": ..., "read": ..., "admin": ...}
secrets/NAME/KEY what a manifest refers to, put there by the owner
"""

from __future__ import annotations

import json
import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from vacancy_agent.store.errors import StoreError
from vacancy_agent.store.files import private_folder, replace_file
from vacancy_agent.store.lock import DirLock
from vacancy_api.tokens import new_token

SCOPES = ("borrow", "read", "admin")


@dataclass(frozen=True, slots=True)
class Tokens:
    """The three tokens of an agent that runs alone."""

    borrow: str
    read: str
    admin: str
    path: Path
    """Where they are written, for the message of the first start."""
    created: bool
    """They were made by this call."""


class StateDir:
    """An agent's state directory, locked for it."""

    def __init__(self, path: Path) -> None:
        """Make it if need be and lock it.

        Raises:
            InUseError: another agent uses it.
            StoreError: it cannot be made or written.
        """
        private_folder(path)
        self.path = path
        self._lock = DirLock(path / "lock")

    @property
    def holds(self) -> Path:
        """Folder of the hold journal."""
        return self.path / "holds"

    @property
    def database(self) -> Path:
        """File of `store.sqlite`."""
        return self.path / "vacancy.sqlite3"

    def close(self) -> None:
        """Let another agent have it."""
        self._lock.release()

    def tokens(self) -> Tokens:
        """The tokens, made on the first call of the directory's life; readable to the agent's user alone.

        Raises:
            StoreError: the file cannot be read or written, or holds something else.
        """
        path = self.path / "tokens.json"
        found = _read(path)
        if found is None:
            made = {scope: new_token() for scope in SCOPES}
            replace_file(path, json.dumps(made, indent=2).encode() + b"\n")
            return Tokens(**made, path=path, created=True)
        if sys.platform != "win32":
            _make_private(path)
        return Tokens(**_parse_tokens(found, path), path=path, created=False)

    def secret(self, name: str, key: str) -> str:
        """The text of `secrets/NAME/KEY`, without the line end an editor puts there.

        Raises:
            StoreError: there is none, it cannot be read, or the names lead out of the folder.
        """
        return read_secret(self.path, name, key)

    def load_config(self) -> bytes | None:
        """The configuration that was applied last; None before the first.

        Raises:
            StoreError: it is there and cannot be read.
        """
        return _read(self.path / "last-good.json")

    def save_config(self, content: bytes) -> None:
        """Keep a configuration that was applied; the one before stays until this one is on the disk.

        Raises:
            StoreError: it could not be written.
        """
        replace_file(self.path / "last-good.json", content)


def read_secret(folder: Path, name: str, key: str) -> str:
    """`StateDir.secret`, for whoever only reads: an agent may have the directory at the same time.

    Raises:
        StoreError: there is none, it cannot be read, or the names lead out of the folder.
    """
    if not all(_plain(part) for part in (name, key)):
        raise StoreError(f"secret {name!r} key {key!r}: not a plain name")
    path = folder / "secrets" / name / key
    raw = _read(path)
    if raw is None:
        raise StoreError(f"no secret {name!r} with the key {key!r}: write it to {path}")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise StoreError(f"{path} is not UTF-8 text") from error
    return text.removesuffix("\n").removesuffix("\r")


def default_state_dir() -> Path:
    """Where an agent keeps its state when it is not told: the system's place for root, else the user's."""
    if sys.platform == "win32":
        return Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData")) / "Vacancy"
    else:  # noqa: RET505 - mypy leaves out a branch of another platform, not what follows one
        return Path("/var/lib/vacancy") if os.geteuid() == 0 else _home_state()


def _home_state() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "vacancy"


def _plain(part: str) -> bool:
    return part not in {"", ".", ".."} and not any(mark in part for mark in "/\\:\0")


def _read(path: Path) -> bytes | None:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for, for ever
            raise StoreError(f"cannot read {path}: it is no file")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError.of("read", path, error) from error


def _make_private(path: Path) -> None:
    try:
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise StoreError.of("protect", path, error) from error


def _parse_tokens(raw: bytes, path: Path) -> dict[str, str]:
    try:
        parsed = json.loads(raw)
        found = {scope: parsed[scope] for scope in SCOPES}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"{path} does not hold the tokens borrow, read and admin: {_REMAKE}") from error
    if not all(isinstance(token, str) and token for token in found.values()):
        raise StoreError(f"{path} holds a token that is no text: {_REMAKE}")
    if not all(token.isascii() and token.isprintable() for token in found.values()):
        raise StoreError(f"{path} holds a token that no header can carry: {_REMAKE}")
    return found


_REMAKE = "delete it to have new ones made"
