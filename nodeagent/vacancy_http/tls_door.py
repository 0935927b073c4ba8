"""The door of a listener that speaks TLS: who comes through has its handshake behind it.

Invariant: handshakes that are under way and clients are together at most `max_connections`, or a few
handshakes more where the clients alone are that many; at the cap the oldest handshake makes room. The failure
this prevents: whoever connects and says nothing costs a descriptor and buffers for the ten seconds that a
handshake may take, without counting anywhere, and can take every descriptor the agent has.

Rejected: `loop.create_server(ssl=...)`, which tells of a connection only once its handshake is over, and a
plain server that upgrades (`loop.start_tls`), which delivers bytes before the protocol knows its transport.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import socket
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import ssl as tls
    from collections.abc import Callable

_LEAST = 16
"""Handshakes for which there is room even where clients fill the listener: one of those makes room later."""
_WAIT_S = 1.0
"""Until the next try, where the process or the system has no descriptor left, or nobody knows why not."""


class TlsDoor:
    """Accepts connections and brings them through their handshake.

    Args:
        make: the protocol of a connection.
        context: of the handshake.
        timeout_s: seconds that one handshake may take.
        room: how many handshakes may be under way at this moment.
    """

    def __init__(
        self,
        make: Callable[[], asyncio.Protocol],
        context: tls.SSLContext,
        timeout_s: float,
        room: Callable[[], int],
    ) -> None:
        self._make = make
        self._context = context
        self._timeout_s = timeout_s
        self._room = room
        self.sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._shaking: dict[asyncio.Task[None], None] = {}

    @property
    def handshakes(self) -> int:
        """Handshakes that are under way."""
        return len(self._shaking)

    async def open(self, host: str, port: int, backlog: int) -> Self:
        """Listen on every address of `host`, and accept.

        Raises:
            OSError: an address cannot be used.
        """
        loop = asyncio.get_running_loop()
        # The loop's own server binds: it knows the systems' differences. It never starts to accept.
        bound = await loop.create_server(self._make, host, port, backlog=backlog, start_serving=False)
        try:
            self.sockets = [
                socket.fromfd(one.fileno(), one.family, one.type, one.proto) for one in bound.sockets
            ]
        finally:
            bound.close()
        for one in self.sockets:
            one.setblocking(False)
            one.listen(backlog)
            self._accepting.append(loop.create_task(self._accept(one)))
        return self

    def close(self) -> None:
        """Accept no more; handshakes that are under way are broken off."""
        for task in [*self._accepting, *self._shaking]:
            task.cancel()
        for one in self.sockets:
            one.close()

    async def wait_closed(self) -> None:
        """Wait for what `close` has ended."""
        await asyncio.gather(*self._accepting, *self._shaking, return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listening)
            except OSError as error:
                if error.errno != errno.ECONNABORTED:  # that one: the client left before it was accepted
                    await asyncio.sleep(_WAIT_S)
                continue
            while len(self._shaking) >= max(_LEAST, self._room()):
                oldest = next(iter(self._shaking))
                del self._shaking[oldest]
                oldest.cancel()
            task = loop.create_task(self._shake(sock))
            self._shaking[task] = None
            task.add_done_callback(functools.partial(self._shaken, sock))

    async def _shake(self, sock: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make, sock, ssl=self._context, ssl_handshake_timeout=self._timeout_s
            )
        except OSError:
            sock.close()  # no handshake, or none in time

    def _shaken(self, sock: socket.socket, task: asyncio.Task[None]) -> None:
        self._shaking.pop(task, None)
        if task.cancelled():
            sock.close()
