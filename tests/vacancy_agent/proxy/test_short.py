"""The short way does what the full one does: the same random talk, once with it and once without."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from standins import agreement
from standins.http_engine import Server
from standins.http_text import CHAT, DONE, LAST, STREAM_HEAD, WORD, reply, request
from standins.lending_rig import BORROW, one_upstream
from vacancy_agent.core.facts import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from standins.http_engine import Client
    from standins.lending_rig import LendingRig
    from vacancy_agent.proxy.app import GatedProxy

BODIES: tuple[object, ...] = (
    {"model": "m", "messages": []},
    {"model": "n", "messages": [], "stream": True},
    {"model": "m", "messages": [], "priority": 1},
    {"model": "m", "messages": [], "background": True},
    {"model": None, "messages": []},
    {"messages": []},
    {"model": "m", "Model": "n"},
    {"model": 5},
    {"model": "é"},
    b'{"model":"m","model":"n"}',
    b"no json",
    b'{"model": "m" }',
)
PATHS = (CHAT, CHAT, CHAT, "/v1/embeddings", "/v1/models", "/nowhere")
REPLIES = (
    reply({"ok": 1}),
    reply({"ok": 1}),
    reply(b"no", 400, "text/plain"),
    STREAM_HEAD + WORD + DONE + LAST,
    STREAM_HEAD + WORD + LAST,
    STREAM_HEAD + WORD,
    b"",
)


def left_out(proxy: GatedProxy) -> None:
    """Have the proxy take the full way for everything."""
    proxy._admit = lambda *_: False
    proxy._release = lambda *_: pytest.fail("nothing came the short way")


def talk(rig: LendingRig, seed: int, change: Callable[[GatedProxy], None]) -> list[object]:
    """What 80 random events cause, to whoever may notice."""
    rng = Random(seed)  # noqa: S311 - the same each time
    app = rig.port.app
    change(app)
    clients, heard = [rig.port.connect(), rig.port.connect()], list[object]()
    for _ in range(80):
        which = int(rng.random() < 0.15)  # the second mostly waits for its reply
        clients[which] = _one(rig, rng, clients[which])
        heard += [
            [client.got() for client in clients],
            [link.transport.drain() for link in rig.port.upstream.links],
            [(job.id, job.phase, job.model, job.borrower, job.why) for job in rig.host.ledger.jobs()],
            len(rig.journal.partition("up").holds()),
            dict(app.counters.outcomes),
            dict(app.counters.refused),
            (app.counters.admitted, app.counters.passed, app.refusing, rig.port.budget.used),
            {who: (one.requests, round(one.seconds, 3)) for who, one in rig.host.used.items()},
        ]
        agreement.check(rig.host, rig.journal, rig.reclaims)
    return heard


def _one(rig: LendingRig, rng: Random, client: Client) -> Client:
    if client.transport.is_closing() or client.transport.eof:
        client = rig.port.connect()
    what = rng.random()
    if what < 0.03:
        rig.presence(rng.choice((Evidence.ABSENT, Evidence.PRESENT)))
    elif what < 0.1:
        rig.advance(rng.choice((0.5, 3.0, 40.0)))
        rig.observe()
    elif what < 0.15:
        client.hang_up()
    elif client.protocol.exchange is None:
        client.send(request(rng.choice(PATHS), rng.choice(BODIES), token=BORROW))
    elif client.protocol.exchange.link is not None:
        server, answer = Server(rig.port, client.protocol.exchange.link), rng.choice(REPLIES)
        if answer:
            server.send(answer)
        else:
            server.break_off()
    return client


@pytest.mark.parametrize("seed", range(30))
def test_both_ways_have_the_same_effects(seed: int, lending: Callable[..., LendingRig]) -> None:
    with_it = talk(lending(one_upstream(slots=2)), seed, lambda _app: None)
    assert with_it == talk(lending(one_upstream(slots=2)), seed, left_out)


def test_most_requests_go_it(lending: Callable[..., LendingRig]) -> None:
    rig = lending(one_upstream(slots=2))
    rig.port.connect(request(body=BODIES[0], token=BORROW))  # so that the resource is never idle
    app, went = rig.port.app, list[bool]()
    admit = app._admit

    def counted(*arguments: object) -> bool:
        went.append(admit(*arguments))  # type: ignore[arg-type]
        return went[-1]

    app._admit = counted
    client = rig.port.connect()
    for _ in range(4):
        client.send(request(body=BODIES[0], token=BORROW))
        rig.port.link().send(reply({"ok": 1}))
        assert b" 200 " in client.got()
    assert went == [True] * 4


def test_a_full_journal_refuses(lending: Callable[..., LendingRig]) -> None:
    rig = lending(one_upstream(slots=2))
    first, client = rig.port.connect(request(body=BODIES[0], token=BORROW)), rig.port.connect()
    partition = rig.journal.partition("up")
    wall = rig.host.clock.wall()
    taken = [partition.write(1000 + number, "x", "y", wall) for number in range(partition.capacity - 1)]
    client.send(request(body=BODIES[0], token=BORROW))
    assert b"resource_busy" in client.got()
    assert len(list(rig.host.ledger.jobs())) == len(rig.host.requests) == 1
    for slot in taken:
        partition.free(slot)
    first.hang_up()
