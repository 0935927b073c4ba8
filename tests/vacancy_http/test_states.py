"""Walks the tables, and walks the engine while it watches that it stays on them."""

from __future__ import annotations

import pytest

from standins.http_engine import GET, OK, POST, Rig
from vacancy_http import ListenerLimits, Reply
from vacancy_http.states import (
    CONNECTION_NEXT,
    LINK_NEXT,
    PHASE_NEXT,
    Connection,
    IllegalTransitionError,
    Link,
    Phase,
)

TABLES = [
    (Connection, CONNECTION_NEXT, Connection.IDLE, Connection.CLOSED),
    (Phase, PHASE_NEXT, Phase.DECIDING, Phase.ENDED),
    (Link, LINK_NEXT, Link.CONNECTING, Link.CLOSED),
]
BUSY = Reply(503, (), b"")


@pytest.mark.parametrize(("states", "table", "first", "last"), TABLES, ids=["connection", "phase", "link"])
def test_every_state_is_reachable_and_every_one_can_end(states, table, first, last) -> None:
    assert len(table) == len(states)
    reached, frontier = {first}, [first]
    while frontier:
        for following in table[frontier.pop()]:
            if following not in reached:
                reached.add(following)
                frontier.append(following)
    assert reached == set(states)
    assert table[last] == frozenset()
    assert all(last in table[state] for state in states if state is not last)
    assert all(state not in table[state] for state in states)


@pytest.mark.parametrize("start", list(Connection))
@pytest.mark.parametrize("end", list(Connection))
def test_a_connection_takes_exactly_the_steps_of_its_table(start: Connection, end: Connection) -> None:
    protocol = Rig().connect().protocol
    protocol.state = start
    if end in CONNECTION_NEXT[start]:
        protocol._move(end)
        assert protocol.state is end
    else:
        with pytest.raises(IllegalTransitionError):
            protocol._move(end)
        assert protocol.state is start


@pytest.mark.parametrize("start", list(Phase))
@pytest.mark.parametrize("end", list(Phase))
def test_so_does_an_exchange(start: Phase, end: Phase) -> None:
    rig = Rig()
    rig.connect(GET)
    x = rig.app.seen[0]
    x.phase = start
    if end in PHASE_NEXT[start]:
        x._move(end)
        assert x.phase is end
    else:
        with pytest.raises(IllegalTransitionError):
            x._move(end)


@pytest.mark.parametrize("start", list(Link))
@pytest.mark.parametrize("end", list(Link))
def test_and_a_connection_to_an_upstream(start: Link, end: Link) -> None:
    rig = Rig()
    rig.connect(GET)
    link = rig.upstream.links[0]
    link.state = start
    if end in LINK_NEXT[start]:
        link._move(end)
        assert link.state is end
    else:
        with pytest.raises(IllegalTransitionError):
            link._move(end)


def test_a_second_decision_is_illegal() -> None:
    rig = Rig()
    rig.connect(POST)
    x = rig.app.seen[0]
    with pytest.raises(IllegalTransitionError):
        rig.app.forward(x)
    with pytest.raises(IllegalTransitionError):
        x.collecting()


def test_a_walk_through_every_state_of_a_connection() -> None:
    rig = Rig(ListenerLimits(max_body_bytes=100))
    client = rig.connect()
    walked = [client.protocol.state]

    def step(data: bytes) -> None:
        client.send(data)
        walked.append(client.protocol.state)

    step(POST[:10])
    step(POST[10:-2])
    step(POST[-2:])
    rig.link().send(OK)
    walked.append(client.protocol.state)
    rig.app.on_head = lambda x: x.respond(BUSY)
    step(POST[:-2])
    step(b"lo")
    step(b"junk\n")
    client.hang_up()
    walked.append(client.protocol.state)
    assert walked == [
        Connection.IDLE,
        Connection.HEAD,
        Connection.BODY,
        Connection.REPLY,
        Connection.IDLE,
        Connection.DRAIN,
        Connection.IDLE,
        Connection.LINGER,
        Connection.CLOSED,
    ]
