from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from standins.hosts import NOON, START, host, memory, observe, resource, upstream, vacant
from vacancy_agent.core.contexts import Kind
from vacancy_agent.core.facts import Instant, MiB, Ready, Stale, Unknown
from vacancy_agent.core.gate import Ask, decide
from vacancy_agent.core.residency import residency
from vacancy_agent.core.settings import Dialect, Footprint, ResourceType
from vacancy_agent.core.shown import ModelShown, ModelsShown, PoolShown, SlotsShown
from vacancy_agent.core.verdict import Admit, Refuse
from vacancy_api.reasons import Reason
from vacancy_dialects import RunnerAsk

if TYPE_CHECKING:
    from vacancy_agent.core.board import Board
    from vacancy_agent.core.settings import UpstreamSettings


def at(seconds: float) -> Instant:
    return Instant(START + seconds)


IDLE = SlotsShown(idle=True)


def proof(board: Board, seconds: float = 0) -> tuple[bool, bool]:
    found = residency(board, board.settings.upstreams["llm"], Ask("llm", "m"), at(seconds))
    return found.credited, found.only_too_old


@pytest.mark.parametrize(
    ("reading", "seconds", "credited", "only_too_old"),
    [
        pytest.param(None, 0, False, True, id="not observed yet"),
        pytest.param(Ready(IDLE, at(0)), 4, True, False, id="idle and four seconds old"),
        pytest.param(Ready(IDLE, at(0)), 4.1, False, True, id="older"),
        pytest.param(Ready(SlotsShown(idle=False), at(0)), 1, False, False, id="busy"),
        pytest.param(Stale(IDLE, at(0), "slept"), 0, False, True, id="stale"),
        pytest.param(Unknown("no answer"), 0, False, True, id="unknown"),
    ],
)
def test_only_fresh_idle_slots_prove(
    reading: object, seconds: float, credited: bool, only_too_old: bool
) -> None:
    board = vacant()
    if reading is not None:
        board.set_residency("llm", reading)  # type: ignore[arg-type]
    assert proof(board, seconds) == (credited, only_too_old)


@pytest.mark.parametrize("resource", ["gpu", "ram"])
@pytest.mark.parametrize("unload", [True, False])
def test_a_job_or_an_unload_on_any_resource_voids_it(resource: str, unload: bool) -> None:
    board = vacant(host([upstream(requires=("gpu", "ram"))]))
    board.set_residency("llm", Ready(IDLE, at(1)))
    if unload:
        board.let_go([resource], at(1))
    else:
        board.work_ended(resource, at(1))
    assert proof(board, 2) == (False, True)
    board.set_residency("llm", Ready(IDLE, at(2)))
    assert proof(board, 2) == (True, False)


def charged(resident: int, full: int, free: int, *, idle: bool = True) -> Admit | Refuse:
    board = vacant(host([upstream(default_footprint=Footprint(MiB(full), MiB(resident)))]), free=free)
    board.set_residency("llm", Ready(SlotsShown(idle), at(0)))
    return decide(board, Ask("llm", "m", {"gpu": MiB(50_000)}), at(1), NOON)


def test_a_credited_request_is_charged_its_resident_need_without_the_prior() -> None:
    assert charged(500, 10_000, 500) == Admit(MiB(500), True, "resident: shown by idle slots")


def test_the_resident_need_is_never_more_than_the_full_one() -> None:
    assert charged(10_000, 500, 600) == Admit(MiB(500), True, "resident: shown by idle slots")


def test_a_refusal_says_whether_a_credit_applied() -> None:
    short = charged(500, 10_000, 499)
    assert isinstance(short, Refuse)
    assert short.detail["credit"] == "resident: shown by idle slots"
    busy = charged(500, 10_000, 499, idle=False)
    assert isinstance(busy, Refuse)
    assert busy.detail["credit"] == "none: the server is not idle"
    assert not busy.needs_residency


def test_a_refusal_for_an_old_observation_asks_for_a_new_one() -> None:
    board = vacant(host([upstream(default_footprint=Footprint(MiB(10_000)))]), free=100)
    board.set_residency("llm", Ready(IDLE, at(0)))
    refused = decide(board, Ask("llm"), at(5), NOON)
    assert isinstance(refused, Refuse)
    assert refused.needs_residency
    board.set_residency("llm", Ready(IDLE, at(5)))
    assert isinstance(decide(board, Ask("llm"), at(5), NOON), Admit)


def test_the_resources_own_minimum_applies_with_a_credit_too() -> None:
    settings = host([upstream()])
    board = vacant(settings, free=400)
    strict = replace(settings, resources={"gpu": replace(settings.resources["gpu"], min_free=MiB(401))})
    board.reconfigure(strict)
    board.set_residency("llm", Ready(IDLE, at(0)))
    refused = decide(board, Ask("llm"), at(1), NOON)
    assert isinstance(refused, Refuse)
    assert refused.step == 5


RESOURCES = (resource("gpu", ResourceType.NVIDIA), resource("ram", ResourceType.MEMORY))
OLLAMA = upstream(dialect=Dialect.OLLAMA, default_footprint=Footprint(MiB(10_000), MiB(400)))


def asking(num_ctx: int | None = 4096, *, other: bool = False, model: str | None = "m:latest") -> Ask:
    return Ask("llm", model, None, RunnerAsk(v1=False, num_ctx=num_ctx, other_options=other))


def listed(
    left: float | None = 30, context: int | None = 4096, vram: int = 10, name: str = "m:latest"
) -> ModelShown:
    return ModelShown(name, "d", context, None if left is None else at(left), 10, vram)


def holding(*rows: ModelShown, settings: UpstreamSettings = OLLAMA, free: int = 500) -> Board:
    board = vacant(host([settings], RESOURCES), free=free)
    board.set_residency("llm", Ready(ModelsShown(rows), at(0)))
    return board


def test_a_listed_model_with_the_context_asked_for_is_credited():
    verdict = decide(holding(listed()), asking(), at(0), NOON)
    assert verdict == Admit(MiB(400), True, "resident: listed with context 4096, the request asks for it")


@pytest.mark.parametrize(
    ("rows", "ask", "why"),
    [
        ([], asking(), "the model is not resident"),
        ([listed(), listed()], asking(), "the model is listed twice"),
        ([listed(29.9)], asking(), "the model is about to go"),
        ([listed(None)], asking(), "the time at which the model goes cannot be read"),
        ([listed(context=None)], asking(), "the server does not tell the resident context"),
        ([listed()], asking(2048), "the request is not known to reuse the resident context (4096)"),
        ([listed()], asking(None), "the request is not known to reuse the resident context (4096)"),
        ([listed()], asking(other=True), "the request sets runner options besides num_ctx"),
        ([listed()], asking(model=None), "the request names no model"),
        ([listed()], Ask("llm", "m:latest"), "the request names no model"),
        ([listed(name="n:latest")], asking(), "the model is not resident"),
    ],
)
def test_what_earns_no_credit_says_why_and_asks_for_no_other_look(rows: list[ModelShown], ask: Ask, why: str):
    refused = decide(holding(*rows), ask, at(0), NOON)
    assert isinstance(refused, Refuse)
    assert refused.detail["credit"] == f"none: {why}"
    assert not refused.needs_residency


def test_only_age_asks_for_another_look():
    board = holding(listed(100))
    refused = decide(board, asking(), at(4.1), NOON)
    assert isinstance(refused, Refuse)
    assert refused.needs_residency
    hopeless = decide(board, asking(other=True), at(4.1), NOON)
    assert isinstance(hopeless, Refuse)
    assert not hopeless.needs_residency, "no look would turn it"


def test_a_learned_context_is_credited():
    board = holding(listed(context=8192))
    board.contexts.load([(Kind("d", False, None), 8192)])
    assert residency(board, OLLAMA, asking(None), at(0)).credited


class TestOffTheCard:
    def refused(self, board: Board, seconds: float = 0, model: str = "m:latest") -> Refuse | None:
        verdict = decide(board, asking(model=model), at(seconds), NOON)
        return verdict if isinstance(verdict, Refuse) else None

    def test_a_listed_model_that_is_not_wholly_on_it_is_refused(self):
        refused = self.refused(holding(listed(vram=9), free=20_000))
        assert refused is not None
        assert (refused.reason, refused.retry_after, refused.step) == (Reason.UPSTREAM_NOT_ON_GPU, 30, 6)
        assert refused.detail == {"resource": "gpu", "model": "m:latest"}
        assert not refused.needs_residency

    def test_an_old_list_says_so_too_and_asks_for_a_look(self):
        refused = self.refused(holding(listed(100, vram=0), free=20_000), 10)
        assert refused is not None
        assert refused.needs_residency

    def test_not_once_the_model_would_have_gone_nor_for_another_one(self):
        assert self.refused(holding(listed(9, vram=0), free=20_000), 10) is None
        assert self.refused(holding(listed(vram=0), free=20_000), model="n:latest") is None

    def test_a11_of_a_model_from_before_a_sleep_it_is_not_known(self):
        """ollama/ollama#5464: after a resume the card is gone and the work runs on the processor."""
        board = holding(listed(100), free=20_000)
        board.resumed(at(5))
        observe(board, START + 6)
        refused = self.refused(board, 6)
        assert refused is not None
        assert refused.reason is Reason.UPSTREAM_NOT_ON_GPU
        assert refused.needs_residency
        assert self.refused(board, 6, model="n:latest") is None
        board.set_residency("llm", Ready(ModelsShown((listed(100),)), at(6)))
        assert self.refused(board, 6) is None

    def test_not_where_no_card_is_on_the_route_or_the_list_is_outdated(self):
        on_memory = upstream(dialect=Dialect.OLLAMA, requires=("ram",))
        assert self.refused(holding(listed(vram=0), settings=on_memory)) is None
        board = holding(listed(vram=0), free=20_000)
        board.set_residency("llm", Stale(ModelsShown((listed(vram=0),)), at(0), "slept"))
        assert self.refused(board) is None


class TestAnAllocatorsPool:
    def board(self, shown: PoolShown, requires: tuple[str, ...] = ("gpu", "ram"), free: int = 6_000) -> Board:
        comfy = upstream(
            dialect=Dialect.COMFYUI, requires=requires, default_footprint=Footprint(MiB(8_000), MiB(100))
        )
        board = vacant(host([comfy], RESOURCES), free=free)
        board.set_residency("llm", Ready(shown, at(0)))
        if "ram" in requires:
            board.set_capacity("ram", Ready(memory(9_000), at(0)))
        return board

    def test_is_added_to_the_free_memory_of_the_one_card_and_nothing_is_credited(self):
        verdict = decide(self.board(PoolShown(MiB(2_000))), Ask("llm"), at(1), NOON)
        assert verdict == Admit(MiB(8_000), False, "added: 2000 MiB that its allocator holds", MiB(2_000))

    def test_falls_short_with_the_sum(self):
        refused = decide(self.board(PoolShown(MiB(1_999))), Ask("llm"), at(1), NOON)
        assert isinstance(refused, Refuse)
        assert refused.detail["freeMiB"] == 7_999
        assert refused.detail["credit"] == "added: 1999 MiB that its allocator holds"

    def test_is_not_added_to_memory_that_is_no_cards(self):
        board = self.board(PoolShown(MiB(9_000)))
        board.set_capacity("ram", Ready(memory(7_999), at(0)))
        refused = decide(board, Ask("llm"), at(1), NOON)
        assert isinstance(refused, Refuse)
        assert refused.detail["resource"] == "ram"

    @pytest.mark.parametrize(
        ("shown", "why"),
        [(PoolShown(None, "no card"), "no card"), (PoolShown(MiB(0)), "its allocator holds nothing")],
    )
    def test_without_one_nothing_is_added(self, shown: PoolShown, why: str):
        refused = decide(self.board(shown), Ask("llm"), at(1), NOON)
        assert isinstance(refused, Refuse)
        assert refused.detail["credit"] == f"none: {why}"

    def test_a_route_without_exactly_one_card_gets_nothing(self):
        found = residency(
            self.board(PoolShown(MiB(9_000)), ("ram",)),
            upstream(dialect=Dialect.COMFYUI, requires=("ram",)),
            Ask("llm"),
            at(1),
        )
        assert (found.credited, found.added) == (False, 0)


def test_a_dialect_that_shows_nothing_says_so():
    board = vacant(host([upstream(dialect=Dialect.OPENAI)]))
    found = residency(board, board.settings.upstreams["llm"], Ask("llm"), at(0))
    assert found == (False, "none: the upstream does not show its resident model", False, 0)
