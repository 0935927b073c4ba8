from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from standins.hosts import NOON, START, cpu, host, memory, resource, seen, upstream, vacant
from standins.worlds import World, board_of, worlds
from vacancy_agent.core.facts import Evidence, Instant, MiB, Percent, Ready, Unknown, WallTime
from vacancy_agent.core.gate import Ask, decide
from vacancy_agent.core.job import Job, ReleasedBy
from vacancy_agent.core.ledger import Ledger
from vacancy_agent.core.lendable import host_lendable, lendable
from vacancy_agent.core.settings import Footprint, ResourceType
from vacancy_agent.core.verdict import Admit

if TYPE_CHECKING:
    from vacancy_agent.core.board import Board

NEEDS = upstream(default_footprint=Footprint(MiB(10_000)))


def at(seconds: float) -> Instant:
    return Instant(START + seconds)


def reason(board: Board, seconds: float = 0, name: str = "llm") -> str:
    return lendable(board, name, at(seconds), WallTime(NOON + seconds)).reason


def see(board: Board, seconds: float, free: int) -> None:
    board.set_capacity("gpu", Ready(memory(free), at(seconds)))
    board.set_presence(seen(at=at(seconds)), at(seconds))


def start(board: Board, seconds: float = 0) -> tuple[Ledger, Job]:
    ledger = Ledger(board.settings, board)
    job = ledger.reserve("llm", at(seconds), borrower="ci")
    assert isinstance(job, Job)
    return ledger, job


def test_the_gates_reason_in_camel_case() -> None:
    board = vacant(host([NEEDS]), free=9_999)
    assert reason(board) == "InsufficientCapacity"
    see(board, 1, 10_000)
    assert reason(board, 1) == "WouldAdmit"
    board.set_presence(seen(Evidence.PRESENT, at(2)), at(2))
    assert reason(board, 2) == "OwnerActive"


def test_borrowed_work_does_not_make_its_own_host_unlendable() -> None:
    board = vacant(host([NEEDS]), free=20_000)
    ledger, job = start(board)
    for seconds in (3, 6, 300):
        see(board, seconds, 500)
        assert reason(board, seconds) == "WouldAdmit", "its own memory is left aside"
    board.set_capacity("gpu", Unknown("the probe failed"))
    assert reason(board, 300) == "WouldAdmit", "the verdict is the last one before"
    ledger.release(job.id, ReleasedBy.PROOF, at(301))
    assert reason(board, 301) == "WouldAdmit", "nor does the wait for a sample"
    see(board, 302, 500)
    assert reason(board, 302) == "InsufficientCapacity", "what a sample after it shows, counts"


def test_a_host_that_was_short_before_the_work_stays_so() -> None:
    """Work that was admitted by a credit does not raise what was free."""
    board = vacant(host([NEEDS]), free=500)
    start(board)
    see(board, 3, 20_000)
    assert reason(board, 3) == "InsufficientCapacity"


def test_the_wait_for_a_sample_is_not_left_aside_for_ever() -> None:
    board = vacant(host([NEEDS]))
    ledger, job = start(board)
    ledger.release(job.id, ReleasedBy.PROOF, at(1))
    board.set_presence(seen(at=at(17)), at(17))
    assert reason(board, 17) == "ResourceUnmeasured"


def test_the_owner_and_switches_count_also_during_work() -> None:
    board = vacant(host([NEEDS]))
    start(board)
    board.set_resource_enabled("gpu", False)
    assert reason(board) == "ResourceDisabled"
    board.set_presence(seen(Evidence.PRESENT, at(1)), at(1))
    assert reason(board, 1) == "OwnerActive"


def test_the_smallest_model_stands_for_all() -> None:
    sizes = {"small": Footprint(MiB(4_000)), "large": Footprint(MiB(14_000))}
    board = vacant(host([upstream(default_footprint=Footprint(MiB(20_000)), footprints=sizes)]), free=4_000)
    assert reason(board) == "WouldAdmit"
    see(board, 1, 3_999)
    assert reason(board, 1) == "InsufficientCapacity"


def test_borrowed_load_on_the_processors_is_left_aside() -> None:
    limited = resource("cpu", ResourceType.CPU, max_utilization=Percent(50.0))
    board = vacant(host([upstream(requires=("cpu",))], [limited]))
    start(board)
    board.set_capacity("cpu", Ready(cpu(100.0), at(3)))
    assert reason(board, 3) == "WouldAdmit"


def test_a_host_is_lendable_when_any_upstream_is() -> None:
    board = vacant(host([upstream("a", ("gpu",)), upstream("b", ("card",))]))
    board.set_capacity("gpu", Unknown("no driver"))
    assert host_lendable(board, START, NOON).yes
    board.set_resource_enabled("card", False)
    assert host_lendable(board, START, NOON).reason == "ResourceUnmeasured", "the first of one step"
    board.set_presence(seen(Evidence.UNCLEAR), START)
    assert host_lendable(board, START, NOON).reason == "OwnerActive", "the earliest step: the widest cause"


def test_a_host_that_nobody_can_reach_is_not_lendable() -> None:
    board = vacant(host([upstream("a"), upstream("b")]))
    assert host_lendable(board, START, NOON, {"a"}.__contains__).yes
    shut = host_lendable(board, START, NOON, lambda _: False)
    assert shut.reason == "UpstreamUnavailable"
    board.set_presence(seen(Evidence.PRESENT), START)
    assert host_lendable(board, START, NOON, lambda _: False).reason == "OwnerActive"


def test_a_host_without_upstreams_lends_nothing() -> None:
    settings = host()
    board = vacant(settings)
    board.settings = type(settings)(
        settings.lending, settings.owner, settings.sampling, settings.resources, {}
    )
    assert not host_lendable(board, START, NOON).yes


@given(worlds())
def test_without_borrowed_work_it_is_the_gate_for_the_smallest_model(world: World) -> None:
    board = board_of(world)
    for name in world.cards:
        board.unread.discard(name)
    now = Instant(world.now)
    models = [None, "small", "large"]
    admitted = [isinstance(decide(board, Ask("llm", model), now, NOON), Admit) for model in models]
    answer = lendable(board, "llm", now, NOON)
    smallest = min(range(3), key=lambda i: world.footprints[models[i]][0])
    if world.residency is None:
        assert answer.yes == admitted[smallest]
    else:  # an observation that is too old for a credit still stands for the next one
        assert answer.yes or not admitted[smallest]
