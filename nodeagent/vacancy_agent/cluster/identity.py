"""Who the agent is in the cluster: the files of the join Secret in one folder.

Invariant: the token is read from its file for every request, and the authority's certificate whenever a
connection is made: whoever renews them replaces files and starts nothing anew. The option rejected is to read
them at start, which ends in 401 when a token of an hour is renewed behind the agent's back.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pathlib import Path

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?\Z")


class JoinError(Exception):
    """The folder does not say which cluster to join, or as whom; one line for each reason."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("; ".join(errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Identity:
    """The host that the agent acts for, and where."""

    server: str
    """URL of the API server, without a slash at its end."""
    namespace: str
    name: str
    """Of the LendingHost."""
    folder: Path

    @property
    def prefix(self) -> str:
        """How everything of this host is named: `lh-NAME`."""
        return f"lh-{self.name}"

    def token(self) -> str:
        """The bearer token as it is in its file now.

        Raises:
            JoinError: there is none.
        """
        token = _text(self.folder, "token")
        if not token or not token.isascii() or not token.isprintable():
            raise JoinError([f"{self.folder / 'token'} must hold the token alone, in one line"])
        return token

    def authority(self) -> str | None:
        """The certificate that the API server is trusted by (PEM); None: the system's trust decides.

        Raises:
            JoinError: it is there and cannot be read.
        """
        return _text(self.folder, "ca.crt") if (self.folder / "ca.crt").exists() else None


def read_identity(folder: Path) -> Identity:
    """The identity in a folder with `server`, `namespace`, `name`, `token` and (for most clusters) `ca.crt`.

    Raises:
        JoinError: with everything that is missing or wrong.
    """
    found, errors = {}, []
    for key, wrong in (("server", _server_problem), ("namespace", _label_problem), ("name", _name_problem)):
        try:
            found[key] = _text(folder, key)
        except JoinError as error:
            errors += error.errors
            continue
        problem = wrong(found[key])
        if problem:
            errors.append(f"{folder / key}: {found[key][:80]!r} {problem}")
    identity = Identity(
        found.get("server", "").rstrip("/"), found.get("namespace", ""), found.get("name", ""), folder
    )
    for read in (identity.token, identity.authority):
        try:
            read()
        except JoinError as error:
            errors += error.errors
    if errors:
        raise JoinError(errors)
    return identity


def _text(folder: Path, key: str) -> str:
    path = folder / key
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise JoinError([f"{path} is not there: the folder must hold the files of the join Secret"]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise JoinError([f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"]) from error


def _server_problem(server: str) -> str | None:
    try:
        url = urlsplit(server)
        host = url.hostname
        url.port  # noqa: B018 - raises for a port that is none
    except ValueError:
        return "is not a URL"
    if not host or url.scheme not in {"https", "http"} or url.query or url.fragment:
        return "must be a URL such as https://192.0.2.1:6443"
    if url.scheme == "http" and not _is_loopback(host):
        return "must be https: the token would go over the network in the clear"
    return None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _label_problem(text: str) -> str | None:
    return None if _LABEL.match(text) else "is not the name of a namespace"


def _name_problem(text: str) -> str | None:
    return None if _NAME.match(text) else "is not the name of a LendingHost"
