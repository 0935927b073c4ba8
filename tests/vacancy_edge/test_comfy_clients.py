from __future__ import annotations

import pytest

from vacancy_edge import Refusal
from vacancy_edge.comfy_clients import IDLE_S, MOST_OF_ONE, ClientIds, client_in, foreign_client


def test_an_id_belongs_to_whoever_used_it_first() -> None:
    ids = ClientIds()
    assert ids.claim("server", "c", "ann", 0.0)
    assert ids.claim("server", "c", "ann", 1.0)
    assert not ids.claim("server", "c", "ben", 2.0)
    assert ids.claim("other server", "c", "ben", 2.0)
    assert ids.claim("server", "d", "ben", 2.0)


def test_an_id_is_free_again_an_hour_after_its_last_use() -> None:
    ids = ClientIds()
    ids.claim("s", "c", "ann", 0.0)
    ids.claim("s", "c", "ann", 100.0)
    assert not ids.claim("s", "c", "ben", IDLE_S + 99)
    assert ids.claim("s", "c", "ben", IDLE_S + 100)
    assert not ids.claim("s", "c", "ann", IDLE_S + 101)


def test_an_open_tunnel_keeps_its_id() -> None:
    ids = ClientIds()
    ids.claim("s", "c", "ann", 0.0)
    ids.opened("s", "c")
    ids.opened("s", "c")
    ids.closed("s", "c", 10.0)
    assert not ids.claim("s", "c", "ben", 10 * IDLE_S)
    ids.closed("s", "c", 10 * IDLE_S)
    assert not ids.claim("s", "c", "ben", 10 * IDLE_S + 1)
    assert ids.claim("s", "c", "ben", 11 * IDLE_S)
    ids.closed("s", "unknown", 0.0)
    ids.opened("s", "unknown")


def test_one_borrower_takes_no_room_from_another() -> None:
    ids = ClientIds()
    ids.claim("s", "ann's", "ann", 0.0)
    for number in range(MOST_OF_ONE):
        assert ids.claim("s", str(number), "ben", 1.0)
    ids.opened("s", "0")
    assert ids.claim("s", "one more", "ben", 2.0)
    assert not ids.claim("s", "ann's", "ben", 3.0)
    assert not ids.claim("s", "0", "ann", 3.0)  # a tunnel is open
    assert ids.claim("s", "1", "ann", 3.0)  # used longest ago of ben's, so forgotten


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (None, None),
        (b"", None),
        (b"clientId=", None),
        (b"x=1&clientId=abc", "abc"),
        (b"clientId=a%20b+c", "a b c"),
        (b"clientid=abc", None),
    ],
)
def test_the_id_of_a_socket(query: bytes | None, found: str | None) -> None:
    assert client_in(query, "clientId") == found


@pytest.mark.parametrize(
    "query",
    [
        b"clientId=a&clientId=b",
        b"clientId=a&%63lientId=b",
        b"clientId=a&CLIENTID=b",
        b"clientId=a;x=1",
        b"clientId=%ff",
        b"clientId=\xe4",
        b"clientId=" + b"x" * 300,
        b"&".join(b"a%d=1" % n for n in range(40)),
    ],
)
def test_a_query_that_could_be_read_in_two_ways_is_refused(query: bytes) -> None:
    assert isinstance(client_in(query, "clientId"), Refusal)


def test_a_refusal_tells_what_to_do() -> None:
    assert "random UUID" in foreign_client("x\ud800").message
