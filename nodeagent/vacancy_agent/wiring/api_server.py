"""The API's socket, which follows the configuration.

Invariant: whoever may connect cannot take descriptors without end. aiohttp bounds neither the number of
connections nor the time of a head, and an agent without free descriptors reads no presence any more.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_server import Server

from vacancy_agent.admin.app import make_app
from vacancy_agent.store.errors import StoreError
from vacancy_agent.wiring.listeners import cannot_listen
from vacancy_agent.wiring.secret_files import CertificateError, certificate
from vacancy_http.socket_state import listens

if TYPE_CHECKING:
    import ssl

    from aiohttp.web_protocol import RequestHandler

    from vacancy_agent.admin.running import Running
    from vacancy_agent.core.settings import AccessSettings
    from vacancy_agent.store.state import StateDir
    from vacancy_agent.wiring.secret_files import Certificate

MOST_CONNECTIONS = 128
"""At the cap the oldest connection makes room: an answer takes milliseconds, so that one waits for none."""
IDLE_S = 75.0
"""From a connection's opening, or its last answer, to the next complete head."""
HANDSHAKE_S = 10.0
GRACE_S = 1.0
"""For answers that are being written when the socket closes."""


class ApiServer:
    """One for an agent."""

    def __init__(self, agent: Running, state: StateDir) -> None:
        self._agent = agent
        self._state = state
        self._handlers: Server | None = None
        self._server: asyncio.Server | None = None
        self._at: tuple[str, int, Certificate | None] | None = None

    async def follow(self, access: AccessSettings) -> list[str]:
        """Listen where these settings say.

        Returns:
            Why that cannot be, one line; where it listened before it still does, if the socket is another.
        """
        try:
            tls = certificate(self._state, access.tls_secret)
            wanted = (access.listen, access.api_port, tls)
            if wanted == self._at:
                return []
            context = tls.context() if tls is not None else None
        except (StoreError, CertificateError) as error:
            return [f"spec.access.tls.secretRef: {error}"]
        if self._at is not None and self._at[:2] == wanted[:2]:
            await self.close()  # only its certificate is another, and one socket cannot be bound twice
        handlers = Server(make_app(self._agent), access_log=None, logger=_logger(), keepalive_timeout=IDLE_S)
        try:
            server = await _listen(handlers, access, context)
        except OSError as error:
            path = "spec.access.apiPort"
            return [cannot_listen(error, path, "the API", access.listen, access.api_port)]
        await self.close()
        self._handlers, self._server, self._at = handlers, server, wanted
        self._agent.host.tell("api", address=access.listen, port=access.api_port)
        return []

    def deaf(self) -> list[str]:
        """The API, if it listened and does not any more, though nobody stopped it."""
        return [] if self._server is None or listens(self._server) else ["the API"]

    async def close(self) -> None:
        """Stop listening."""
        handlers, self._handlers, self._at = self._handlers, None, None
        server, self._server = self._server, None
        if server is not None:
            server.close()
        if handlers is not None:
            handlers.pre_shutdown()  # idle connections go at once, as in aiohttp's own runner
            await handlers.shutdown(GRACE_S)


async def _listen(handlers: Server, access: AccessSettings, context: ssl.SSLContext | None) -> asyncio.Server:
    def accept() -> asyncio.Protocol:
        open_now = [one for one in handlers.connections if not _is_closing(one)]
        if len(open_now) >= MOST_CONNECTIONS:
            _abort(open_now[0])
        return handlers()

    return await asyncio.get_running_loop().create_server(
        accept,
        access.listen,
        access.api_port,
        ssl=context,
        backlog=MOST_CONNECTIONS,
        ssl_handshake_timeout=None if context is None else HANDSHAKE_S,
    )


def _is_closing(connection: RequestHandler) -> bool:
    return connection.transport is None or connection.transport.is_closing()


def _abort(connection: RequestHandler) -> None:
    if connection.transport is not None:
        connection.transport.abort()


def _logger() -> logging.Logger:
    """Tells of our own failures. What is no HTTP is its sender's: each would be a traceback in the log."""
    logger = logging.getLogger("vacancy.api")
    logger.filters[:] = [lambda record: not _is_senders(record)]
    return logger


def _is_senders(record: logging.LogRecord) -> bool:
    return record.exc_info is not None and isinstance(record.exc_info[1], HttpProcessingError)
