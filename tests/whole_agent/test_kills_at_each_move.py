"""`kill -9` of the agent in the midst of each move that a job can make, and a restart.

The moves are the ledger's own tables: whoever adds one has to say here what a kill in it must leave behind.
What that is, is the same for all: a hold where the end was not proved, none where it was, and never a lost
one. Between the proof and the journal's slot the end counts as not proved: the hold is proved once more.
"""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from standins.agents import free_port, manifest
from standins.comfyui_standin import ComfyStandin, graph
from standins.killable import ENDLESS, Machine
from standins.openai_server import OpenAiStandin
from standins.until import until
from vacancy_agent.core.job import MOVES, RELEASES, Phase, ReleasedBy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

Move = tuple[Phase | None, Phase, ReleasedBy | None]
FORWARDING, TRACKING, HELD, RELEASED = Phase
PROOF, ADMINISTRATOR, REPLACED, ASSUMED = ReleasedBy
HOLD, NONE = True, False


@dataclass
class World:
    """A planted agent in front of a server that works on for clients that have left."""

    machine: Machine
    server: OpenAiStandin
    hasty: int
    """Port of the upstream whose holds are assumed to have ended soon."""

    def another_server(self) -> None:
        """The server's process ends, and another one takes its port."""
        port = self.server.port
        self.server.stop()
        self.server = OpenAiStandin(port)


@dataclass(frozen=True)
class Kill:
    """How a job comes to its move, and what each point of the move must leave behind."""

    drive: Callable[[World], Awaitable[None]]
    points: dict[str, bool]
    prepare: Callable[[World], Awaitable[None]] | None = None


async def a_stream_begins(world: World, port: int = 0) -> None:
    async with await world.machine.borrower(port) as borrower:
        await borrower.chat(stream=True, standin=ENDLESS)
        await borrower.end()


async def a_reply_comes(world: World) -> None:
    async with await world.machine.borrower() as borrower:
        await borrower.chat()
        await borrower.end()


async def its_borrower_leaves(world: World, port: int = 0) -> None:
    async with await world.machine.borrower(port) as borrower:
        await borrower.chat(stream=True, standin=ENDLESS)
        await borrower.until(b"w1 ")
        borrower.leave()


async def it_is_held(world: World) -> None:
    await its_borrower_leaves(world)
    await until(world.machine.holds)


async def the_server_ends_its_work(world: World) -> None:
    world.server.let_go()


async def the_administrator_frees_it(world: World) -> None:
    (hold,) = world.machine.holds()
    with pytest.raises(OSError):  # noqa: PT011 - the connection ends somehow
        world.machine.agent.ask("DELETE", f"/admin/holds/{hold['id']}", scope="admin")


async def it_is_held_and_was_looked_at(world: World) -> None:
    """Between two looks the agent asks first whether the process that has the job is still there."""
    while True:
        world.server.forget()
        await it_is_held(world)
        if world.machine.written()[0].process is not None:
            break
        world.server.let_go()  # the agent has just started, and did not know it yet
        await until(lambda: not world.machine.holds(), within=30)
    await until(lambda: any(seen["target"] == "/metrics" for seen in world.server.seen()))


async def the_server_is_replaced(world: World) -> None:
    world.another_server()


async def it_is_held_for_a_short_time(world: World) -> None:
    await its_borrower_leaves(world, world.hasty)


async def time_passes(world: World) -> None:
    await asyncio.sleep(0)


def freed_by(cause: ReleasedBy) -> dict[str, bool]:
    return {f"before release {cause.value}": HOLD, f"after release {cause.value}": HOLD, "after free": NONE}


KILLS: dict[Move, Kill] = {
    (None, FORWARDING, None): Kill(
        a_stream_begins,
        {"after reserve": NONE, "before write": NONE, "after write": HOLD, "after forward": HOLD},
    ),
    (FORWARDING, HELD, None): Kill(
        its_borrower_leaves,
        {"before hold": HOLD, "after hold": HOLD, "before mark": HOLD, "after mark": HOLD},
    ),
    (FORWARDING, RELEASED, PROOF): Kill(
        a_reply_comes, {"before free": HOLD, "after free": NONE, "before proved": NONE, "after proved": NONE}
    ),
    (HELD, RELEASED, PROOF): Kill(the_server_ends_its_work, freed_by(PROOF), it_is_held),
    (HELD, RELEASED, ADMINISTRATOR): Kill(the_administrator_frees_it, freed_by(ADMINISTRATOR), it_is_held),
    (HELD, RELEASED, REPLACED): Kill(
        the_server_is_replaced, freed_by(REPLACED), it_is_held_and_was_looked_at
    ),
    (HELD, RELEASED, ASSUMED): Kill(time_passes, freed_by(ASSUMED), it_is_held_for_a_short_time),
}
# A job whose submission was answered, and whose prompt runs on.


@dataclass
class Prompts:
    """A planted agent in front of a ComfyUI whose prompts run until they are interrupted."""

    machine: Machine
    server: ComfyStandin

    def another_server(self) -> None:
        """One that knows nothing of the prompts, in the place of the one that was there."""
        port = self.server.port
        self.server.stop()
        self.server = ComfyStandin(port=port)


async def it_is_submitted(world: Prompts) -> None:
    async with await world.machine.borrower() as borrower:
        await borrower.ask({"prompt": graph(3600)}, path="/prompt")
        await borrower.end()


async def it_is_tracked(world: Prompts) -> None:
    """And the agent knows the process that has it."""
    while True:
        async with await world.machine.borrower() as borrower:
            await borrower.ask({"prompt": graph(3600)}, path="/prompt")
            assert (await borrower.answer()).status == 200
        if world.machine.written()[0].process is not None:
            return
        await it_ends(world)
        await until(lambda: not world.machine.written(), within=30)


async def it_ends(world: Prompts) -> None:
    world.server.ask("POST", "/interrupt", {})


async def the_server_says_nothing(world: Prompts) -> None:
    os.kill(world.server.pid, signal.SIGSTOP)


async def the_server_is_gone(world: Prompts) -> None:
    world.server.stop()


@dataclass(frozen=True)
class PromptKill:
    """As `Kill`."""

    drive: Callable[[Prompts], Awaitable[None]]
    points: dict[str, bool]
    prepare: Callable[[Prompts], Awaitable[None]] | None = None


KILLS_OF_PROMPTS: dict[Move, PromptKill] = {
    (FORWARDING, TRACKING, None): PromptKill(
        it_is_submitted, {"before track": HOLD, "after track": HOLD, "before mark": HOLD, "after mark": HOLD}
    ),
    (TRACKING, HELD, None): PromptKill(
        the_server_says_nothing, {"before hold": HOLD, "after hold": HOLD, "after mark": HOLD}, it_is_tracked
    ),
    (TRACKING, RELEASED, PROOF): PromptKill(it_ends, freed_by(PROOF), it_is_tracked),
    (TRACKING, RELEASED, REPLACED): PromptKill(the_server_is_gone, freed_by(REPLACED), it_is_tracked),
}


def test_every_move_of_the_tables_is_killed() -> None:
    moves: set[Move] = {(None, FORWARDING, None)}
    moves |= {(was, to, None) for was in Phase for to in MOVES[was] if to is not RELEASED}
    moves |= {(was, RELEASED, by) for was in Phase for by in RELEASES[was]}
    assert KILLS.keys() | KILLS_OF_PROMPTS.keys() == moves
    assert not KILLS.keys() & KILLS_OF_PROMPTS.keys()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with OpenAiStandin() as server:
        document = manifest(server.url)
        first = document["spec"]["upstreams"][0]
        hasty = first | {"name": "hasty", "port": free_port(), "assumeEndedAfter": "5s"}
        document["spec"]["upstreams"].append(hasty)
        with Machine(tmp_path / "agent", document, planted=True) as machine:
            machine.agent.ready()
            world = World(machine, server, hasty["port"])
            yield world
        if world.server is not server:
            world.server.stop()


@pytest.mark.component
@pytest.mark.parametrize("move", KILLS, ids=lambda move: " ".join(str(one) for one in move if one))
async def test_killed_in_the_midst_of(world: World, move: Move) -> None:
    kill, machine = KILLS[move], world.machine
    for point, hold in kill.points.items():
        if kill.prepare is not None:
            await kill.prepare(world)
        machine.dies_at(point)
        await kill.drive(world)
        await machine.died()
        machine.start()
        held = machine.holds()
        assert len(held) == hold, (point, held)
        if hold:
            assert await machine.refusal() == "resource_busy"
        world.server.let_go()
        await until(lambda: not machine.holds(), within=30)
        assert await machine.refusal() == "", point


@pytest.fixture
def prompts(tmp_path: Path) -> Iterator[Prompts]:
    with ComfyStandin() as server:
        document = manifest(server.url, dialect="comfyui", yieldOnVeto=False)
        with Machine(tmp_path / "agent", document, planted=True) as machine:
            world = Prompts(machine, server)
            yield world
        if world.server is not server:
            world.server.stop()


async def prompt_refusal(world: Prompts) -> str:
    async with await world.machine.borrower() as borrower:
        await borrower.ask({"prompt": graph(0)}, path="/prompt")
        return (await borrower.answer()).reason


@pytest.mark.component
@pytest.mark.parametrize("move", KILLS_OF_PROMPTS, ids=lambda move: " ".join(str(one) for one in move if one))
async def test_a_prompts_job_killed_in_the_midst_of(prompts: Prompts, move: Move) -> None:
    kill, machine = KILLS_OF_PROMPTS[move], prompts.machine
    for point, hold in kill.points.items():
        if kill.prepare is not None:
            await kill.prepare(prompts)
        machine.dies_at(point)
        await kill.drive(prompts)
        await machine.died()
        if kill.drive is the_server_is_gone:
            prompts.another_server()
        elif kill.drive is the_server_says_nothing:
            os.kill(prompts.server.pid, signal.SIGCONT)
        machine.start()
        if kill.drive in {it_is_submitted, the_server_says_nothing}:
            assert len(machine.holds()) == 1, point
            assert await prompt_refusal(prompts) == "resource_busy"
            await it_ends(prompts)
        else:  # the server itself shows the end, which may come at once
            assert len(machine.written()) <= hold, point
        await until(lambda: not machine.written(), within=30)
        assert machine.holds() == []
        assert await prompt_refusal(prompts) == "", point
        await until(lambda: not machine.written(), within=30)
