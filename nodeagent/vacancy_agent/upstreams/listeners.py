"""Who listens on a port: every process that has the socket, not one of them.

A server and its workers share one listening socket. psutil names a single process for a socket, and it may be
any of them; the quiet of one worker would then pass for the quiet of all. So on Linux /proc is read here.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PROC = Path("/proc")
_LISTEN = "0A"
_WORD = 4

Listener = tuple[str, int | None]
"""Local address, and a process that has the socket; None for a process that may not be looked at."""


def listeners(port: int) -> list[Listener]:
    """All TCP listeners on the port, with every process that has one of them.

    Raises:
        OSError: the sockets cannot be read.
    """
    if sys.platform == "linux":
        sockets = dict(_sockets(port))
        owners = list(_owners(sockets.keys())) if sockets else []
        unseen = sockets.keys() - {inode for inode, _ in owners}
        return [(sockets[inode], pid) for inode, pid in owners] + [(sockets[inode], None) for inode in unseen]
    else:  # noqa: RET505 - mypy leaves out a branch of another platform, not what follows one
        return _by_psutil(port)


def addresses_listening(port: int) -> set[str]:
    """Local addresses of all TCP listeners on the port, whoever has them.

    Raises:
        OSError: the sockets cannot be read.
    """
    if sys.platform == "linux":
        return {address for _, address in _sockets(port)}
    else:  # noqa: RET505 - as above
        return {address for address, _ in _by_psutil(port)}


def _by_psutil(port: int) -> list[Listener]:
    try:
        return [
            (found.laddr.ip, found.pid)
            for found in psutil.net_connections("tcp")
            if found.status == psutil.CONN_LISTEN and found.laddr and found.laddr.port == port
        ]
    except psutil.Error as error:
        raise PermissionError(str(error)) from error


def _sockets(port: int) -> Iterator[tuple[str, str]]:
    """Inode and address of each listening socket on the port, from /proc/net."""
    mark = f":{port:04X} "
    for name in ("tcp", "tcp6"):
        try:
            table = (PROC / "self" / "net" / name).open(encoding="ascii")
        except FileNotFoundError:  # a kernel without IPv6
            continue
        with table:  # line by line: a busy machine has thousands, of which one or two are wanted
            for line in table:
                if mark not in line:
                    continue
                fields = line.split()
                address, _, number = fields[1].partition(":")
                if fields[3] == _LISTEN and int(number, 16) == port:
                    yield fields[9], decode_address(address)


def decode_address(text: str) -> str:
    """An address as /proc/net prints it: hexadecimal words in the machine's own byte order."""
    raw = bytes.fromhex(text)
    words = [raw[at : at + _WORD] for at in range(0, len(raw), _WORD)]
    if sys.byteorder == "little":
        words = [word[::-1] for word in words]
    address = ipaddress.ip_address(b"".join(words))
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _owners(inodes: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Each process that has one of the sockets open, as far as it may be looked at."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    for entry in os.scandir(PROC):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it ended, or is another user's
            found = {link for link in _links(f"{entry.path}/fd") if link in wanted}
            for link in found:
                yield wanted[link], int(entry.name)


def _links(folder: str) -> Iterator[str]:
    for name in os.listdir(folder):  # noqa: PTH208 - thousands of descriptors: no objects for them
        with contextlib.suppress(FileNotFoundError):
            yield os.readlink(f"{folder}/{name}")  # noqa: PTH115 - the same
