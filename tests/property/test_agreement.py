"""Random schedules of requests, cuts, owner's edges, samples, kills: the books agree after every step.

Everything but wires, time and samples is real (`standins.lending_rig`). The failure that this looks for is a
slot that leaks, or is given back twice, in an order of events that nobody thought of.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from standins import agreement
from standins.hosts import host, resource, upstream
from standins.http_engine import Client, FakeTransport, Server
from standins.http_text import DONE, LAST, STREAM_HEAD, WORD, reply, request
from standins.lending_rig import BORROW, LendingRig, Port
from vacancy_agent.core.facts import Evidence, MiB, Seconds, Unknown, WallTime
from vacancy_agent.core.job import JobId, Phase, ReleasedBy
from vacancy_agent.core.lending import LocalPause
from vacancy_agent.core.settings import (
    Dialect,
    Footprint,
    OnOwnerReturn,
    OwnerScope,
    OwnerSettings,
    ResourceType,
)
from vacancy_agent.proxy import work
from vacancy_http.states import Link

QUIET = Seconds(3.0)
NAMES = ("host-scoped", "resource-scoped", "both")
BODIES: dict[str, object] = {
    "plain": {"model": "m"},
    "stream": {"model": "m", "stream": True},
    "large": {"model": "m", "prompt": "x" * 64},
    "wrong": b"{",
}
FIRST = {  # what a server can say to a request, and in the midst of a stream
    "go on": STREAM_HEAD + WORD,
    "finish": reply(),
    "refuse": reply(b"no", 500),
    "stream": STREAM_HEAD + WORD + DONE + LAST,
    "unproved": STREAM_HEAD + WORD + LAST,
    "garbage": b"ICY 200\r\n\r\n",
    "dirty": reply() + b"217\r\n",
}
THEN = FIRST | {
    "go on": WORD,
    "finish": DONE + LAST,
    "refuse": WORD * 3000,
    "stream": WORD + DONE + LAST,
    "unproved": LAST,
}
COMMON = ["plain", "stream", "plain", "stream", "large", "wrong"]
ODD = (
    "ask_for_something_else",
    "begin_a_body",
    "send_more",
    "stop_or_start_to_read",
    "server_goes",
    "server_is_stopped_or_slow",
    "connection_is_made_or_not",
    "pause_or_resume",
    "switch",
    "sleep",
    "free_what_still_runs",
    "kill_and_restart",
    "another_configuration",
    "another_configuration",
    "old_listeners_end",
)
pick = st.integers(0, 5)
some = st.sampled_from(NAMES)
mostly = st.sampled_from([True, True, True, False])


def settings_of(policy: OnOwnerReturn, slots: int = 2, names: tuple[str, ...] = NAMES) -> Any:
    common: dict[str, Any] = {"dialect": Dialect.OPENAI, "default_footprint": Footprint(MiB(1000))}
    ups = [
        upstream(NAMES[0], ("ram",), slots=slots, on_owner_return=policy, **common),
        upstream(NAMES[1], ("gpu",), owner_scope=OwnerScope.RESOURCE, **common),
        upstream(NAMES[2], ("gpu", "ram"), slots=slots, on_owner_return=policy, **common),
    ]
    owner = OwnerSettings(release_after=QUIET)
    return host(
        ups,
        owner=owner,
        resources=[resource("ram", ResourceType.MEMORY), resource("gpu", ResourceType.NVIDIA)],
    )


class Agreement(RuleBasedStateMachine):
    """One host with three upstreams on two resources."""

    @initialize(policy=st.sampled_from(OnOwnerReturn))
    def start(self, policy: OnOwnerReturn) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(work, "LARGE", 64)  # megabytes would only cost time here
        self.folder = Path(tempfile.mkdtemp(prefix="vacancy-agreement-"))
        self.clients: list[tuple[Port, Client]] = []
        self.policy = policy
        self.slots: dict[str, int] = dict.fromkeys(NAMES, 2)
        self.rig = LendingRig(self.folder, settings_of(policy))

    # What happens most: orders, answers, departures, proofs.

    @rule(name=some, bodies=st.lists(st.sampled_from(COMMON), min_size=1, max_size=3), well=mostly)
    def orders(self, name: str, bodies: list[str], well: bool) -> None:
        if well and name in self.rig.ports:
            self._all_is_well(name)
        for body in bodies:
            self._connect(name, request(body=BODIES[body], token=BORROW))
            self.the_books_agree()

    @rule(answers=st.lists(st.tuples(pick, st.sampled_from(sorted(FIRST))), min_size=1, max_size=4))
    def answers(self, answers: list[tuple[int, str]]) -> None:
        for which, what in answers:
            if (server := self._server(which)) is not None:
                server.send((THEN if server.protocol.state is Link.BODY else FIRST)[what])
                self.the_books_agree()

    @rule(which=pick, reset=st.booleans())
    def somebody_leaves(self, which: int, reset: bool) -> None:
        client = self._client(which)
        if client is not None and reset:
            client.break_off(ConnectionResetError())
        elif client is not None:
            client.hang_up()

    @rule(which=pick, by=st.sampled_from(ReleasedBy))
    def a_proof_comes(self, which: int, by: ReleasedBy) -> None:
        held = [job.id for job in self.rig.host.ledger.holds()]
        if held:
            job = held[which % len(held)]
            assert self.rig.holds.release(job, by, "seen")
            assert not self.rig.holds.release(job, by, "seen twice")

    @rule(evidence=st.sampled_from([*Evidence, None]))
    def presence(self, evidence: Evidence | None) -> None:
        if evidence is None:
            self.rig.readings.set_presence(Unknown("the bus is silent"))
        else:
            self.rig.presence(evidence)

    @rule(
        names=st.sets(st.sampled_from(["ram", "gpu"]), min_size=1),
        free=st.sampled_from([20_000, 20_000, 500]),
        comes=mostly,
    )
    def sample(self, names: set[str], free: int, comes: bool) -> None:
        for name in names:
            self.rig.samples.free[name] = free
        (self.rig.samples.take if comes else self.rig.samples.give_up)(*names)

    @rule(seconds=st.sampled_from([0.3, 2.0, 6.0, 31.0, 70.0]))
    def time_passes(self, seconds: float) -> None:
        self.rig.helper.answer()
        self.rig.advance(seconds)
        self.rig.readings.tick()

    # What happens now and then.

    @rule(odd=st.sampled_from(ODD), name=some, which=pick, yes=st.booleans())
    def now_and_then(self, odd: str, name: str, which: int, yes: bool) -> None:
        getattr(self, f"_{odd}")(name, which, yes)

    def _ask_for_something_else(self, name: str, which: int, yes: bool) -> None:
        path = "/v1/models" if yes else "/metrics"
        self._connect(name, request(path, method="GET", token=BORROW if which else None))

    def _begin_a_body(self, name: str, which: int, yes: bool) -> None:
        self._connect(name, request(body={"model": "m"}, token=BORROW)[:-9])

    def _send_more(self, name: str, which: int, yes: bool) -> None:
        if (client := self._client(which)) is not None:
            client.send(b'l": "m"}' if yes else request(body={"model": "m"}, token=BORROW))

    def _stop_or_start_to_read(self, name: str, which: int, yes: bool) -> None:
        if (client := self._client(which)) is not None:
            client.transport.clogged = yes
            if not yes:
                client.transport.take(client.transport.unsent)
                self.rig.loop.settle()

    def _server_goes(self, name: str, which: int, yes: bool) -> None:
        server = self._server(which)
        if server is not None and yes:
            server.hang_up()
        elif server is not None:
            server.break_off(ConnectionResetError())

    def _server_is_stopped_or_slow(self, name: str, which: int, yes: bool) -> None:
        if name in self.rig.ports:
            self.rig.ports[name].upstream.connects = yes
            self.rig.ports[name].upstream.waits = yes

    def _connection_is_made_or_not(self, name: str, which: int, yes: bool) -> None:
        links = [link for port in self.rig.ports.values() for link in port.upstream.links]
        waiting = [link for link in links if link.exchange is not None and not hasattr(link, "transport")]
        if waiting and yes:
            waiting[0].connection_made(FakeTransport(self.rig.loop, waiting[0]))  # type: ignore[arg-type]
        elif waiting:
            waiting[0].connect_failed("refused")
        self.rig.loop.settle()

    def _pause_or_resume(self, name: str, which: int, yes: bool) -> None:
        rig = self.rig
        until = WallTime(rig.clock.wall() + 20.0) if which else None
        rig.host.board.set_local_pause(LocalPause(until) if yes else None)
        if yes:
            rig.reclaim.lending_stopped(rig.clock.now())

    def _switch(self, name: str, which: int, yes: bool) -> None:
        self.rig.host.board.set_resource_enabled("ram" if which % 2 else "gpu", yes)

    def _sleep(self, name: str, which: int, yes: bool) -> None:
        now = self.rig.clock.now()
        (self.rig.readings.suspending if yes else self.rig.readings.resumed)(now)

    def _free_what_still_runs(self, name: str, which: int, yes: bool) -> None:
        job = next(iter(self.rig.host.requests), JobId(10**9))
        for by in ReleasedBy:
            if by is not ReleasedBy.PROOF:
                assert not self.rig.holds.release(job, by, "wanted, but it runs")

    def _another_configuration(self, name: str, which: int, yes: bool) -> None:
        """Another number of slots, another policy, or without one upstream; else the first one again."""
        policy = list(OnOwnerReturn)[which % 3] if which > 3 else self.policy
        names = tuple(one for one in NAMES if one != name) if yes else NAMES
        slots = 3 if which % 2 else 2
        if slots == 3 and self.slots:
            self.slots = dict.fromkeys(NAMES, 3)
        self.rig.reconfigure(settings_of(policy, slots, names))

    def _old_listeners_end(self, name: str, which: int, yes: bool) -> None:
        self.rig.end_listeners()

    def _kill_and_restart(self, name: str, which: int, yes: bool) -> None:
        before = {job.id: job.upstream for job in self.rig.host.ledger.jobs()}
        self.clients = []
        self.rig = self.rig.again()
        names = self.rig.settings.upstreams
        if len(names) < len(NAMES):
            self.slots = {}  # who comes back to the configuration brings its holds along
        before = {job: upstream for job, upstream in before.items() if upstream in names}
        assert {job.id: job.upstream for job in self.rig.host.ledger.jobs()} == before
        assert {job.phase for job in self.rig.host.ledger.jobs()} <= {Phase.HELD}

    # What must be true.

    @invariant()
    def the_books_agree(self) -> None:
        if not hasattr(self, "rig"):
            return
        rig = self.rig
        agreement.check(rig.host, rig.journal, rig.reclaims, self.slots)
        for name, counters in rig.host.counters.items():
            running = sum(1 for r in rig.host.requests.values() if r.job and r.job.upstream == name)
            assert counters.admitted == sum(counters.outcomes.values()) + running
        for port in (*rig.ports.values(), *rig.ending):
            exchanges = [c.exchange for c in port.listener._connections if c.exchange is not None]
            assert port.budget.used == sum(x.reserved for x in exchanges)
            links = [link for link in port.upstream.links if link.exchange is not None]
            assert len(links) == sum(x.link is not None for x in exchanges)

    def teardown(self) -> None:
        if not hasattr(self, "rig"):
            return
        with contextlib.ExitStack() as last:
            last.callback(shutil.rmtree, self.folder)
            last.callback(self.patch.undo)
            last.callback(self.rig.tidy)
            self._everybody_goes()
            self._everybody_can_have_their_slots_again()

    def _everybody_goes(self) -> None:
        rig = self.rig
        if rig.settings.upstreams.keys() != set(NAMES):
            rig.reconfigure(settings_of(self.policy))
        rig.end_listeners()
        for _, client in self.clients:
            if not client.transport.is_closing():
                client.break_off()
        rig.samples.give_up()
        for job in list(rig.host.ledger.holds()):
            rig.holds.release(job.id, ReleasedBy.PROOF, "idle")
        rig.advance(1.0)
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)
        assert [port.budget.used for port in rig.ports.values()] == [0, 0, 0]
        assert all(not rig.journal.partition(name).holds() for name in NAMES)

    def _all_is_well(self, name: str) -> None:
        """Nothing but other borrowers stands in the way of this upstream."""
        rig = self.rig
        rig.readings.resumed(rig.clock.now())
        rig.host.board.set_local_pause(None)
        rig.samples.free.clear()
        for one in ("ram", "gpu"):
            rig.host.board.set_resource_enabled(one, True)
        if rig.host.board.veto.engaged:
            rig.advance(QUIET + 0.1)
        rig.observe()
        rig.ports[name].upstream.connects, rig.ports[name].upstream.waits = True, False

    def _everybody_can_have_their_slots_again(self) -> None:
        rig = self.rig
        for name in NAMES:
            self._all_is_well(name)
            port, number = rig.ports[name], rig.settings.upstreams[name].slots
            clients = [port.connect(request(body={"model": "m"}, token=BORROW)) for _ in range(number)]
            assert [client.got() for client in clients] == [b""] * number
            assert len(rig.host.requests) == number
            for link in [link for link in port.upstream.links if link.exchange is not None]:
                Server(port, link).send(reply())  # type: ignore[arg-type]
            rig.samples.take()
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)

    def _connect(self, name: str, raw: bytes) -> None:
        """To the upstream's listener, or to one that is about to end."""
        port = self.rig.ports.get(name) or next(iter(self.rig.ending), None)
        if port is None:
            return
        client = port.connect(raw[:-3])
        client.send(raw[-3:])  # a body that comes later may be judged aside
        self.clients.append((port, client))

    def _client(self, which: int) -> Client | None:
        there = [client for _, client in self.clients if not client.transport.is_closing()]
        return there[which % len(there)] if there else None

    def _server(self, which: int) -> Server | None:
        """A connection on which an answer is owed; without any, one that rests."""
        open_ = [
            (port, link)
            for port in (*self.rig.ports.values(), *self.rig.ending)
            for link in port.upstream.links
            if hasattr(link, "transport") and not link.transport.is_closing()
        ]
        there = [entry for entry in open_ if entry[1].exchange is not None] or open_
        return Server(*there[which % len(there)]) if there else None  # type: ignore[arg-type]


Agreement.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=30,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestAgreement = Agreement.TestCase
