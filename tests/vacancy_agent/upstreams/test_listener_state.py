"""Where a server listens: the socket that serves the target, and no other on its port."""

from __future__ import annotations

import socket

import pytest

from vacancy_agent.core.settings import Target
from vacancy_agent.upstreams import listener_state as module
from vacancy_agent.upstreams.listener_state import ListenerState, judge, listener_state

HERE = frozenset({"127.0.0.1"})
LOCALHOST = frozenset({"127.0.0.1", "::1"})


@pytest.mark.parametrize(
    ("listening", "addresses", "state"),
    [
        ({"127.0.0.1"}, HERE, ListenerState.LOOPBACK_ONLY),
        ({"127.0.0.1", "::1"}, LOCALHOST, ListenerState.LOOPBACK_ONLY),
        ({"0.0.0.0"}, HERE, ListenerState.LISTENS_ON_NETWORK),
        ({"::"}, HERE, ListenerState.LISTENS_ON_NETWORK),
        (
            {"127.0.0.1", "0.0.0.0"},
            HERE,
            ListenerState.LOOPBACK_ONLY,
        ),  # two programs: the first is the server
        ({"192.0.2.7"}, frozenset({"192.0.2.7"}), ListenerState.LISTENS_ON_NETWORK),
        ({"192.0.2.7"}, HERE, ListenerState.UNKNOWN),
        ({"127.0.0.2"}, HERE, ListenerState.UNKNOWN),
        (set(), LOCALHOST, ListenerState.UNKNOWN),
    ],
)
def test_the_socket_that_accepts_the_target_decides(
    listening: set[str], addresses: frozenset[str], state: ListenerState
):
    assert judge(listening, addresses) is state


@pytest.mark.parametrize("host", ["ollama.example", "192.0.2.1", "2001:db8::1"])
def test_a_target_elsewhere_is_not_observable(host: str):
    assert listener_state(Target("http", host, 80)) is ListenerState.NOT_OBSERVABLE


@pytest.mark.parametrize("error", [OSError("no descriptor"), ValueError("no table"), IndexError("no column")])
def test_a_table_that_cannot_be_read_says_nothing(error: Exception, monkeypatch: pytest.MonkeyPatch):
    def fails(_port: int) -> set[str]:
        raise error

    monkeypatch.setattr(module, "addresses_listening", fails)
    assert listener_state(Target("http", "127.0.0.1", 80)) is ListenerState.UNKNOWN


@pytest.mark.component
@pytest.mark.parametrize(
    ("bind", "state"),
    [("127.0.0.1", ListenerState.LOOPBACK_ONLY), ("0.0.0.0", ListenerState.LISTENS_ON_NETWORK)],
)
def test_real_sockets(bind: str, state: ListenerState):
    with socket.socket() as server:
        server.bind((bind, 0))
        target = Target("http", "localhost", server.getsockname()[1])
        assert listener_state(target) is ListenerState.UNKNOWN  # bound is not listening
        server.listen()
        assert listener_state(target) is state
