"""The one command that makes an external machine join: the files of its join Secret, packed into it.

Invariant: the files that come out are readable by their owner alone. The command itself carries the token, so
it is a secret like the one it was made from.
"""

from __future__ import annotations

import base64
import gzip
import io
import shlex
import tarfile
from typing import TYPE_CHECKING

from vacancy_operator.core.tokens import decoded

if TYPE_CHECKING:
    from vacancy_operator.core.kinds import Object

FILES = ("server", "ca.crt", "token", "namespace", "name")


class JoinError(Exception):
    """The host cannot be joined (yet); the text says why and what to do."""


def files_of(secret: Object | None, host: str) -> dict[str, str]:
    """The files of a join Secret.

    Raises:
        JoinError: There is no such Secret, or something is missing in it.
    """
    if secret is None:
        raise JoinError(
            f"there is no Secret lh-{host}-join: is there a LendingHost {host} with spec.external in this "
            "namespace (--namespace names another), and does an operator run?"
        )
    found = {name: decoded(secret, name) for name in FILES}
    lacking = [name for name in FILES if found[name] is None]
    if lacking:
        raise JoinError(f"the Secret lh-{host}-join lacks {', '.join(lacking)} yet: try again in a moment")
    return {name: text or "" for name, text in found.items()}


def archive(files: dict[str, str]) -> bytes:
    """The files as a tar archive, compressed; the same files give the same bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o600
            tar.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(packed.getvalue(), mtime=0)


def posix_command(files: dict[str, str]) -> str:
    """For a shell on Linux or macOS."""
    packed = base64.b64encode(archive(files)).decode()
    unpack = f'printf %s {packed} | base64 -d | tar -xzf - -C "$d"'
    where = f'd="$HOME"/.config/vacancy/join/{shlex.quote(files["name"])}'
    return f'{where} && (umask 077 && mkdir -p "$d" && {unpack}) && vacancy agent --join "$d"'


def powershell_command(files: dict[str, str]) -> str:
    """For PowerShell on Windows."""
    packed = base64.b64encode(archive(files)).decode()
    return "; ".join(
        [
            f'$d = "$env:LOCALAPPDATA\\vacancy\\join\\{files["name"]}"',
            "New-Item -ItemType Directory -Force $d | Out-Null",
            f"[IO.File]::WriteAllBytes(\"$d\\join.tgz\", [Convert]::FromBase64String('{packed}'))",
            'tar -xzf "$d\\join.tgz" -C $d',
            'Remove-Item "$d\\join.tgz"',
            "vacancy agent --join $d",
        ]
    )
