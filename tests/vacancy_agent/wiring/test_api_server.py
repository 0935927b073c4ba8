"""The API's socket follows the configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import aiohttp
import pytest

from standins.agents import free_port, lender, manifest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.component


async def alive(port: int) -> bool:
    try:
        async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{port}/healthz") as answer:
            return answer.status == 200
    except aiohttp.ClientConnectorError:
        return False


async def test_another_port_is_listened_on_and_the_old_one_is_given_up(tmp_path: Path):
    async with lender(tmp_path / "a", manifest("http://127.0.0.1:9")) as lent:
        assert lent.agent.api is not None
        port = free_port()
        assert await lent.agent.api.follow(replace(lent.agent.config.access, api_port=port)) == []
        assert await alive(port)
        assert not await alive(lent.api_port)


async def test_a_port_that_is_taken_is_named_and_the_old_one_goes_on(tmp_path: Path):
    async with lender(tmp_path / "a", manifest("http://127.0.0.1:9")) as lent:
        assert lent.agent.api is not None
        (error,) = await lent.agent.api.follow(replace(lent.agent.config.access, api_port=lent.port))
        assert f"127.0.0.1:{lent.port}" in error
        assert "spec.access" in error
        assert await alive(lent.api_port)


async def test_a_change_that_is_not_about_the_socket_leaves_it_alone(tmp_path: Path):
    async with lender(tmp_path / "a", manifest("http://127.0.0.1:9")) as lent:
        assert lent.agent.api is not None
        before = len([event for event, _ in lent.told if event == "api"])
        assert await lent.agent.api.follow(replace(lent.agent.config.access, trust_loopback=True)) == []
        assert len([event for event, _ in lent.told if event == "api"]) == before
