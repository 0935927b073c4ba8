"""An upstream and its pool of connections.

Connections are reused last in, first out: the busy few stay warm and the rest age out. Before one is used
again its socket is polled (0.3 us): bytes or a FIN that lie there unread would otherwise be taken for the
answer to the next request. A connection is opened by a task; it lives until the connection is made, never as
long as a request.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from typing import TYPE_CHECKING

from vacancy_http.limits import UpstreamLimits
from vacancy_http.redirect import rewrite_location
from vacancy_http.upstream_conn import UpstreamConnection

if TYPE_CHECKING:
    from vacancy_http.exchange import Exchange
    from vacancy_http.head_memo import Around
    from vacancy_http.response_parser import ParsedResponse
    from vacancy_http.wheel import Wheel

_DEFAULT_LIMITS = UpstreamLimits()
_DEFAULT_PORTS = {False: 80, True: 443}


def _why(error: Exception) -> str:
    """Why there is no connection, for the client: the words of the system name where it leads to."""
    if isinstance(error, ssl.SSLError):
        return "no TLS connection to it could be made"
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return "its name is not known"
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number).lower() if number else "none of its addresses takes a connection"


class Upstream:
    """One server that requests are forwarded to. Belongs to the loop it is first used on.

    Args:
        host: name or address, without brackets.
        port: TCP port.
        limits: see `UpstreamLimits`.
        tls: context for an upstream that speaks TLS.
        authority: the Host field to send; by default made of host and port.
    """

    plain: ParsedResponse
    """The last head of a plain reply: the next one is most likely the same."""

    __slots__ = (
        "_opening",
        "_tls",
        "around",
        "authority",
        "heads",
        "host",
        "host_line",
        "idle",
        "limits",
        "plain",
        "port",
        "room",
    )

    def __init__(
        self,
        host: str,
        port: int,
        *,
        limits: UpstreamLimits = _DEFAULT_LIMITS,
        tls: ssl.SSLContext | None = None,
        authority: bytes | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.limits = limits
        self._tls = tls
        if authority is None:
            name = f"[{host}]" if ":" in host else host
            plain = port == _DEFAULT_PORTS[tls is not None]
            authority = (name if plain else f"{name}:{port}").encode("ascii")
        self.authority = authority
        self.host_line = b" HTTP/1.1\r\nhost: %b\r\n" % authority
        self.idle: list[UpstreamConnection] = []
        """Connections that rest; whoever takes one from its end calls its `reuse`."""
        self.room = limits.max_idle
        """How many may rest; none once it is closed."""
        self._opening: dict[UpstreamConnection, asyncio.Task[None]] = {}
        self.heads: dict[bytes, ParsedResponse] = {}
        self.around: Around | None = None
        """Of `plain`."""

    @property
    def idle_count(self) -> int:
        """Connections that rest in the pool."""
        return len(self.idle)

    def close(self) -> None:
        """Close what rests; a connection in use is closed when its exchange ends."""
        self.room = 0
        self.close_idle()

    def close_idle(self) -> None:
        """Close what rests now: after a sleep of the machine a connection may be dead without a word."""
        for link in self.idle[:]:
            link.abort()

    def rewrite(self, location: bytes) -> bytes:
        """A redirect's target as the client may see it."""
        return rewrite_location(location, self.host, self.port, tls=self._tls is not None)

    # What the engine calls.

    def dispatch(self, x: Exchange, wheel: Wheel) -> None:
        """Give `x` to a connection that rests, or to a new one."""
        idle = self.idle
        while idle:
            if idle.pop().reuse(x):
                return
        self.open(x, wheel)

    def open(self, x: Exchange, wheel: Wheel) -> None:
        """Give `x` to a new connection."""
        link = UpstreamConnection(self, wheel, x)
        x.link = link
        self.connect(link)

    def connect(self, link: UpstreamConnection) -> None:
        """Make the connection of `link`."""
        self._opening[link] = asyncio.get_running_loop().create_task(self._connect(link))

    def put_back(self, link: UpstreamConnection) -> bool:
        """Keep `link` for later; False when there is no room for it."""
        if len(self.idle) >= self.room:
            return False
        self.idle.append(link)
        return True

    def forget(self, link: UpstreamConnection) -> None:
        """`link` is closed."""
        task = self._opening.pop(link, None)
        if task is not None:
            task.cancel()
        if link in self.idle:
            self.idle.remove(link)

    async def _connect(self, link: UpstreamConnection) -> None:
        loop = asyncio.get_running_loop()
        name = self.host if self._tls is not None else None
        try:
            await loop.create_connection(
                lambda: link, self.host, self.port, ssl=self._tls, server_hostname=name
            )
        except (OSError, ssl.SSLError, UnicodeError) as error:
            self._opening.pop(link, None)
            link.connect_failed(_why(error))
        else:
            self._opening.pop(link, None)
