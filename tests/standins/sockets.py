"""A socket of another process, taken from outside: a fault that no code of the product takes part in."""

from __future__ import annotations

import ctypes
import os
import socket
from pathlib import Path

from standins.require import require

PIDFD_GETFD = 438
"""The same number on every architecture."""


def stop_listening(pid: int, port: int) -> None:
    """Shut down the listening socket of a process of ours, behind its back."""
    with _dup(pid, _listening_fd(pid, port)) as sock:
        sock.shutdown(socket.SHUT_RDWR)


def _dup(pid: int, fd: int) -> socket.socket:
    process = os.pidfd_open(pid)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        taken = libc.syscall(PIDFD_GETFD, process, fd, 0)
    finally:
        os.close(process)
    why = os.strerror(ctypes.get_errno())
    require(taken >= 0, f"pidfd_getfd on a child ({why})", "Linux 5.6 or newer, without a filter on it")
    return socket.socket(fileno=taken)


def _listening_fd(pid: int, port: int) -> int:
    inodes = {
        fields[9]
        for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
        if (fields := line.split())[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port
    }
    links = {f"socket:[{inode}]" for inode in inodes}
    return next(int(one.name) for one in Path(f"/proc/{pid}/fd").iterdir() if str(one.readlink()) in links)
