"""A listener: accepts connections, keeps their number within the limit, ends them in order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vacancy_http.limits import ListenerLimits
from vacancy_http.server_base import EVICTABLE, ClientConnection
from vacancy_http.server_conn import ServerConnection
from vacancy_http.socket_state import listens
from vacancy_http.states import Connection
from vacancy_http.tls_door import TlsDoor
from vacancy_http.wheel import Wheel

if TYPE_CHECKING:
    import ssl as tls

    from vacancy_http.application import Application
    from vacancy_http.request_parser import RequestHead

_BACKLOG = 1024
_DEFAULT_LIMITS = ListenerLimits()


@dataclass(slots=True)
class Counters:
    """What a listener has seen since it started."""

    accepted: int = 0
    evicted: int = 0  # made room for a new connection
    turned_away: int = 0  # found no room
    requests: int = 0
    malformed: int = 0  # heads refused, too large and too late ones included
    tunnels: int = 0  # open now, those whose upstream has not answered yet included


class Listener:
    """Serves one application on one address.

    Args:
        app: decides about each exchange.
        host: address to listen on.
        port: 0 for any free one.
        limits: see `ListenerLimits`.
        ssl: context of a listener that speaks TLS.
    """

    wheel: Wheel

    def __init__(
        self,
        app: Application,
        *,
        host: str,
        port: int,
        limits: ListenerLimits = _DEFAULT_LIMITS,
        ssl: tls.SSLContext | None = None,
    ) -> None:
        self.app = app
        self.limits = limits
        self.port = port
        self.counters = Counters()
        self.closing = False
        self.heads: dict[bytes, RequestHead] = {}
        self._host = host
        self._ssl = ssl
        self._server: asyncio.Server | TlsDoor | None = None
        self._connections: dict[ClientConnection, None] = {}
        self._drained: asyncio.Future[None] | None = None

    @property
    def connection_count(self) -> int:
        """Open connections of clients."""
        return len(self._connections)

    @property
    def listening(self) -> bool:
        """Whether the kernel takes connections for it."""
        return self._server is not None and listens(self._server)

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the address cannot be used.
        """
        loop = asyncio.get_running_loop()
        self.wheel = Wheel(loop)
        if self._ssl is None:
            self._server = await loop.create_server(
                lambda: ServerConnection(self), self._host, self.port, backlog=_BACKLOG
            )
        else:
            door = TlsDoor(
                lambda: ServerConnection(self),
                self._ssl,
                self.limits.header_read_s,
                self._room_for_handshakes,
            )
            self._server = await door.open(self._host, self.port, _BACKLOG)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self, grace_s: float = 0.0) -> None:
        """Accept no more, let exchanges end for `grace_s` seconds, then abort what is left."""
        self.closing = True
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.shut()
        if self._connections and grace_s > 0:
            self._drained = asyncio.get_running_loop().create_future()
            await asyncio.wait({self._drained}, timeout=grace_s)
        for connection in list(self._connections):
            connection.cut()
        if self._server is not None:
            await self._server.wait_closed()

    def _room_for_handshakes(self) -> int:
        return self.limits.max_connections - len(self._connections)

    # What connections call.

    def admit(self, connection: ClientConnection) -> bool:
        """Whether there is room for `connection`; the one that has waited longest for a head makes it.

        One that still takes its reply goes only where nobody waits for a head.
        """
        if self.closing:
            return False
        if len(self._connections) >= self.limits.max_connections:
            waiting = (c for c in self._connections if c.state in EVICTABLE)
            oldest = min(waiting, key=lambda c: (c.state is Connection.CLOSING, c.since), default=None)
            if oldest is None:
                self.counters.turned_away += 1
                return False
            self.counters.evicted += 1
            oldest.abort()
        self.counters.accepted += 1
        self._connections[connection] = None
        return True

    def forget(self, connection: ClientConnection) -> None:
        """`connection` is closed."""
        self._connections.pop(connection, None)
        if not self._connections and self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
