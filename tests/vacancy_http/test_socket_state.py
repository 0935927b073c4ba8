from __future__ import annotations

import socket
import sys
from typing import Any, cast

import pytest

from vacancy_http.socket_state import peer_closed, readable_probe, reset_on_close

pytestmark = pytest.mark.component


class Held:
    """A transport as far as it is asked here."""

    def __init__(self, sock: socket.socket | None) -> None:
        self.sock = sock

    def get_extra_info(self, name: str) -> object:
        assert name == "socket"
        return self.sock


def held(sock: socket.socket | None) -> Any:
    return cast("Any", Held(sock))


@pytest.fixture
def pair():
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    with near, far:
        yield near, far


@pytest.mark.skipif(sys.platform != "linux", reason="TCP_INFO")
def test_a_fin_behind_unread_bytes_is_seen(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    assert not peer_closed(held(near))
    far.sendall(b"unread")
    far.close()
    near.recv(1, socket.MSG_PEEK)
    assert peer_closed(held(near))


def test_a_closed_socket_has_no_peer() -> None:
    sock = socket.socket()
    sock.close()
    if hasattr(socket, "TCP_INFO"):
        assert peer_closed(held(sock))
    assert not peer_closed(held(None))


def test_reset_on_close(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    reset_on_close(held(near))
    near.close()
    with pytest.raises(ConnectionResetError):
        far.recv(1)
    reset_on_close(held(None))


@pytest.mark.skipif(sys.platform == "win32", reason="no poll")
def test_the_probe_sees_bytes_and_a_fin(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    probe = readable_probe(held(near))
    assert probe is not None
    assert not probe(0)
    far.sendall(b"x")
    assert probe(1000)
    near.recv(1)
    assert not probe(0)
    far.close()
    assert probe(1000)
    assert readable_probe(held(None)) is None
