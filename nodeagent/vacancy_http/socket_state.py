"""What the kernel knows of a socket that the loop is not reading.

A FIN is seen by reading. Where reading is paused (bytes of the next request are held back) the timer wheel
asks here, so that a client that left is noticed within a second there too.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from asyncio.trsock import TransportSocket
    from collections.abc import Callable, Iterable
    from typing import Protocol

    class _Listening(Protocol):
        """A server with sockets: asyncio's, or the door for TLS."""

        @property
        def sockets(self) -> Iterable[TransportSocket | socket.socket]:
            """Those it listens on."""


_ESTABLISHED = 1  # tcpi_state of TCP_INFO
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 s


def peer_closed(transport: asyncio.BaseTransport) -> bool:
    """Whether the other side has sent its FIN or a reset; False where the system does not tell."""
    sock = transport.get_extra_info("socket")
    if sock is None or not hasattr(socket, "TCP_INFO"):
        return False
    try:
        info: bytes = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
    except OSError:
        return True
    return info[0] != _ESTABLISHED


def listens(server: _Listening) -> bool:
    """Whether the kernel takes connections for each of the server's sockets.

    The server itself does not know: on one that was shut down under it, asyncio accepts errors without end.
    """
    try:
        flags = [one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) for one in server.sockets]
    except OSError:
        return False
    return bool(flags) and all(flags)


def reset_on_close(transport: asyncio.BaseTransport) -> None:
    """Make the coming close a reset: a client of HTTP/1.0 would take a FIN for the clean end of its reply."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def readable_probe(transport: asyncio.BaseTransport) -> Callable[[int], list[Any]] | None:
    """A function that, called with 0, gives a non-empty list when something waits: bytes, a FIN, an error.

    None where the system has no `poll`.
    """
    sock = transport.get_extra_info("socket")
    if sys.platform != "win32" and sock is not None:
        poller = select.poll()
        poller.register(sock.fileno(), select.POLLIN)
        return poller.poll
    return None
