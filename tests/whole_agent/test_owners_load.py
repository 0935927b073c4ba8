"""The owner starts a game on the card that is lent: a whole agent beside a stand-in nvidia-smi."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from lab.nvidia_smi_lab import device, process
from standins import agreement
from standins.agents import lender, manifest
from standins.borrowers import Borrower
from standins.until import until
from vacancy_agent.core.facts import Percent, Seconds
from vacancy_agent.core.learned import BINS, Calibration
from vacancy_agent.store.sqlite import LocalStore
from vacancy_agent.store.state import StateDir

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from lab.nvidia_smi_lab import NvidiaSmiLab
    from standins.agents import Lender
    from standins.openai_server import OpenAiStandin

pytestmark = pytest.mark.component
CARD = "GPU-5c89852c-d268-4dfc-8d9a-7b3d3a9a1b2c"
GAME = 4_000_000
LONG = {"chunks": 600, "every_s": 0.05}
FIXED = {"mode": "fixed", "thresholdPercent": 20, "engageAfter": "500ms", "releaseAfter": "1s"}


def document(standin: OpenAiStandin, pressure: dict[str, Any] | None, **upstream: Any) -> dict[str, Any]:
    card: dict[str, Any] = {"name": "gpu", "type": "nvidia"}
    return manifest(
        standin.url,
        resource="gpu",
        slots=3,
        spec_resources=[card if pressure is None else card | {"pressure": pressure}],
        spec_sampling={"interval": "500ms", "pressureInterval": "200ms"},
        **upstream,
    )


async def pressure(lent: Lender) -> dict[str, Any]:
    shown: dict[str, Any] = (await lent.status())["agent"]["resources"][0]["pressure"]
    return shown


async def shows(lent: Lender, state: str, within: float = 20.0) -> dict[str, Any]:
    """The pressure, once it is in this state."""
    async with asyncio.timeout(within):
        while (shown := await pressure(lent))["state"] != state:  # noqa: ASYNC110 - the API is asked
            await asyncio.sleep(0.02)
    return shown


@pytest.fixture
def card(nvidia_smi: NvidiaSmiLab) -> NvidiaSmiLab:
    nvidia_smi.devices(device(CARD))
    nvidia_smi.processes(process(CARD, GAME, sm=2))
    return nvidia_smi


@asynccontextmanager
async def streaming(lent: Lender) -> AsyncIterator[Borrower]:
    """A borrower who has got some words."""
    async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
        await borrower.chat(stream=True, standin=LONG)
        await borrower.until(b"w1 ")
        yield borrower


async def test_a_game_takes_the_card_back_and_its_end_lends_it_again(
    standin: OpenAiStandin, card: NvidiaSmiLab, tmp_path: Path
) -> None:
    async with lender(tmp_path / "agent", document(standin, FIXED)) as lent:
        await lent.until(lambda up: up["lendable"])
        assert await shows(lent, "clear") == {
            "state": "clear",
            "thresholdPercent": 20.0,
            "calibratedMinutes": None,
        }
        async with streaming(lent) as borrower, await Borrower.at(lent.port, lent.tokens.borrow) as waiting:
            await waiting.chat(standin={"head_delay_s": 60})
            await until(lambda: len(standin.seen()) == 2)
            card.processes(process(CARD, GAME, sm=85))
            assert await borrower.end() == "reset"
            told = await waiting.answer()
            assert (told.status, told.reason) == (503, "resource_pressured")
            assert told.error["detail"] == {"cause": "taken_back"}
        assert (await pressure(lent))["state"] == "engaged"
        async with lent.chat() as refused:
            assert (refused.status, refused.headers["X-Vacancy-Reason"]) == (503, "resource_pressured")
            assert refused.headers["Retry-After"] == "30"
        status, metrics = await lent.api("GET", "/metrics")
        assert status == 200
        assert 'vacancy_resource_pressured{resource="gpu"} 1.0' in metrics
        assert 'vacancy_resource_owner_load_pct{resource="gpu"} 85.0' in metrics
        assert 'vacancy_resource_pressure_threshold_pct{resource="gpu"} 20.0' in metrics
        card.processes(process(CARD, GAME, sm=1))
        await shows(lent, "clear")
        await lent.until(lambda up: up["lendable"] and up["held"] == 0)
        async with lent.chat() as got:
            assert got.status == 200
        agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)
        told_of = [facts["state"] for event, facts in lent.told if event == "pressure"]
        assert [state for state in told_of if state != "unknown"] == ["clear", "engaged", "clear"]


async def test_a_game_that_ends_within_the_drain_spares_the_stream(
    standin: OpenAiStandin, card: NvidiaSmiLab, tmp_path: Path
) -> None:
    drain = document(standin, FIXED, onOwnerReturn="drain", drainTimeout="60s")
    async with lender(tmp_path / "agent", drain) as lent:
        await lent.until(lambda up: up["lendable"])
        async with streaming(lent) as borrower:
            card.processes(process(CARD, GAME, sm=85))
            await until(lambda: lent.agent.reclaims)
            card.processes(process(CARD, GAME, sm=1))
            await until(lambda: lent.agent.reclaims["up"].phase == "stood_down", within=20)
            borrower.got = b""
            await borrower.until(b"w")


async def test_the_servers_own_load_cuts_nobody(
    standin: OpenAiStandin, card: NvidiaSmiLab, tmp_path: Path
) -> None:
    """The stand-in serves from a process of its own; its load is the borrower's."""
    async with lender(tmp_path / "agent", document(standin, FIXED)) as lent:
        await lent.until(lambda up: up["lendable"])
        await until(lambda: lent.agent.host.processes.get("up"), within=20)
        server = lent.agent.host.processes["up"].pid
        assert server != os.getpid()
        async with streaming(lent) as borrower:
            card.processes(process(CARD, server, sm=97, kind="C"), process(CARD, GAME, sm=2))
            calls = len(card.pmon_calls)
            await until(lambda: len(card.pmon_calls) > calls + 8, within=30)
            borrower.got = b""
            await borrower.until(b"w")
            assert (await pressure(lent))["state"] == "clear"
            assert not (await lent.upstream())["unseenGpuWork"]


async def test_work_that_no_process_of_the_server_does_is_reported_until_one_does(
    standin: OpenAiStandin, card: NvidiaSmiLab, tmp_path: Path
) -> None:
    async with lender(tmp_path / "agent", document(standin, FIXED)) as lent:
        await lent.until(lambda up: up["lendable"])
        await until(lambda: lent.agent.host.processes.get("up"), within=20)
        async with streaming(lent):
            await lent.until(lambda up: up["unseenGpuWork"])
            server = lent.agent.host.processes["up"].pid
            card.processes(process(CARD, server, sm=0, kind="C"))
            await lent.until(lambda up: not up["unseenGpuWork"])
        assert [event for event, _ in lent.told].count("warning: unseen GPU work") == 1


async def test_a_driver_that_cannot_tell_is_off_where_nothing_was_written(
    standin: OpenAiStandin, nvidia_smi: NvidiaSmiLab, tmp_path: Path
) -> None:
    nvidia_smi.devices(device(CARD))
    async with lender(tmp_path / "agent", document(standin, None)) as lent:
        await lent.until(lambda up: up["lendable"])
        assert (await pressure(lent))["state"] == "off"
        async with lent.chat() as got:
            assert got.status == 200


async def test_and_refuses_where_it_was(
    standin: OpenAiStandin, nvidia_smi: NvidiaSmiLab, tmp_path: Path
) -> None:
    nvidia_smi.devices(device(CARD))
    async with lender(tmp_path / "agent", document(standin, {"mode": "learned"})) as lent:
        await until(lambda: nvidia_smi.pmon_calls, within=20)
        async with lent.chat() as refused:
            assert refused.headers["X-Vacancy-Reason"] == "resource_unmeasured"
        assert (await pressure(lent))["state"] == "unknown"


async def test_with_a_fixed_threshold_the_total_is_judged_while_nothing_borrowed_runs(
    standin: OpenAiStandin, nvidia_smi: NvidiaSmiLab, tmp_path: Path
) -> None:
    nvidia_smi.devices(device(CARD, utilization__gpu=3))
    async with lender(tmp_path / "agent", document(standin, FIXED)) as lent:
        await lent.until(lambda up: up["lendable"])
        async with streaming(lent) as borrower:
            nvidia_smi.devices(device(CARD, utilization__gpu=99))
            await shows(lent, "suspended")
            borrower.got = b""
            await borrower.until(b"w")
        await shows(lent, "engaged")
        nvidia_smi.devices(device(CARD, utilization__gpu=0))
        await lent.until(lambda up: up["lendable"], within=20)


async def test_a_hung_pmon_moves_neither_presence_nor_capacity_and_refuses(
    standin: OpenAiStandin, card: NvidiaSmiLab, tmp_path: Path
) -> None:
    async with lender(tmp_path / "agent", document(standin, FIXED)) as lent:
        await lent.until(lambda up: up["lendable"])
        card.pmon_mode("hang")
        await lent.until(lambda up: up["reason"] == "resource_unmeasured", within=20)
        board, clock = lent.agent.host.board, lent.agent.host.clock
        assert board.presence_at is not None
        assert clock.now() - board.presence_at < 3.0
        ages = (await lent.status())["owner"]["sampleAges"]
        assert ages["gpu"] < 3.0
        card.pmon_mode("ok")
        await lent.until(lambda up: up["lendable"], within=60)


class TestLearned:
    """A calibration of an earlier run is what makes this quick."""

    def keep(self, folder: Path, card: str) -> None:
        state = StateDir(folder / "agent" / "state")
        store = LocalStore(state.database)
        bins = (1000.0, *[0.0] * (BINS - 1))
        asyncio.run(self._keep(store, Calibration(card, bins, Seconds(1000.0), Percent(12.0))))
        state.close()

    async def _keep(self, store: LocalStore, one: Calibration) -> None:
        await store.set_calibrations({"gpu": one})
        await store.close()

    def saved(self, folder: Path) -> tuple[str, float]:
        state = StateDir(folder / "agent" / "state")
        with contextlib.closing(sqlite3.connect(state.database)) as db:
            device_kept, observed = db.execute("SELECT device, observed FROM calibration").fetchone()
        state.close()
        return str(device_kept), float(observed)

    async def test_is_judged_by_what_was_learned_before_and_saved_at_the_end(
        self, standin: OpenAiStandin, card: NvidiaSmiLab, tmp_path: Path
    ) -> None:
        await asyncio.to_thread(self.keep, tmp_path, CARD)
        async with lender(tmp_path / "agent", document(standin, None)) as lent:
            await lent.until(lambda up: up["lendable"])
            shown = await shows(lent, "clear")
            assert 10.0 <= shown["thresholdPercent"] <= 12.0
            assert shown["calibratedMinutes"] >= 16.6
            await until(lambda: len(card.pmon_calls) > 8, within=20)
        device_kept, observed = self.saved(tmp_path)
        assert device_kept == CARD
        assert observed > 1000.0

    async def test_of_another_card_is_discarded_with_one_line(
        self, standin: OpenAiStandin, card: NvidiaSmiLab, tmp_path: Path
    ) -> None:
        await asyncio.to_thread(self.keep, tmp_path, "GPU-of-another-time")
        async with lender(tmp_path / "agent", document(standin, None)) as lent:
            await shows(lent, "calibrating")
            async with lent.chat() as refused:
                assert refused.headers["X-Vacancy-Reason"] == "resource_unmeasured"
            discarded = [facts for event, facts in lent.told if event == "calibration discarded"]
            assert discarded == [{"resource": "gpu", "why": "another device"}]
