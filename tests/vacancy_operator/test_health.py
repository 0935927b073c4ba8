from __future__ import annotations

import aiohttp
import pytest

from vacancy_operator.health import Health, HealthServer
from vacancy_operator.metrics import Metrics


@pytest.mark.parametrize(
    ("silence", "synced", "active", "alive", "ready"),
    [
        (0.0, False, False, 200, (503, "not everything is listed yet\n")),
        (0.0, True, False, 200, (503, "standby\n")),
        (420.0, True, True, 200, (200, "active\n")),
        (420.1, True, True, 503, (200, "active\n")),
    ],
)
def test_what_is_said(silence: float, synced: bool, active: bool, alive: int, ready: tuple[int, str]) -> None:
    health = Health(silence, 420.0, synced, active)
    assert health.alive()[0] == alive
    assert health.ready() == ready


@pytest.mark.component
async def test_it_is_said_over_http() -> None:
    server = HealthServer(lambda: Health(500.0, 420.0, synced=True, active=True), Metrics())
    await server.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as client:
            async with client.get("/healthz") as reply:
                assert (reply.status, await reply.text()) == (
                    503,
                    "nothing seen of the API server for 500 s\n",
                )
            async with client.get("/readyz") as reply:
                assert reply.status == 200
            async with client.get("/metrics") as reply:
                assert "vacancy_operator_hosts" in await reply.text()
    finally:
        await server.close()
