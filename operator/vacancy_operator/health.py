"""/healthz, /readyz and /metrics.

Invariant: `/healthz` fails when neither an event nor a full list has come for longer than a list takes to be
due. kopf's own liveness does not see a single watch that is stuck; a list that fails for minutes does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_operator.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Health:
    """How the process is, at one moment."""

    silence: float
    """Seconds since the last event or full list."""
    limit: float
    """Seconds of silence that are still healthy."""
    synced: bool
    """Whether everything was listed once."""
    active: bool
    """Whether this replica is the one that writes."""

    def alive(self) -> tuple[int, str]:
        """Status and text of /healthz."""
        if self.silence > self.limit:
            return 503, f"nothing seen of the API server for {self.silence:.0f} s\n"
        return 200, "ok\n"

    def ready(self) -> tuple[int, str]:
        """Status and text of /readyz."""
        if not self.synced:
            return 503, "not everything is listed yet\n"
        return (200, "active\n") if self.active else (503, "standby\n")


class HealthServer:
    """Serves them until closed."""

    def __init__(self, health: Callable[[], Health], metrics: Metrics) -> None:
        self._health = health
        self._metrics = metrics
        app = web.Application()
        app.router.add_get("/healthz", self._alive)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._figures)
        self._runner = web.AppRunner(app, access_log=None)
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises:
            OSError: The port is taken.
        """
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        self.port = int(self._runner.addresses[0][1])

    async def close(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _alive(self, _: web.Request) -> web.Response:
        status, text = self._health().alive()
        return web.Response(status=status, text=text)

    async def _ready(self, _: web.Request) -> web.Response:
        status, text = self._health().ready()
        return web.Response(status=status, text=text)

    async def _figures(self, _: web.Request) -> web.Response:
        body = self._metrics.text()
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})
