"""What the application sees of a request."""

from __future__ import annotations

from standins.http_engine import OK, POST, Rig


def test_a_body_in_one_piece_is_given_as_bytes_and_as_a_body() -> None:
    rig = Rig()
    seen: list[object] = []
    rig.app.on_body = lambda x: seen.extend((x.small, x.body, x.body))
    rig.connect(POST)
    small, body, again = seen
    assert small == b"hello"
    assert body is again
    x = rig.app.seen[0]
    assert x.body is not None
    assert x.body.bytes == small


def test_a_body_in_several_pieces_is_the_same() -> None:
    rig = Rig()
    client = rig.connect(POST[:-2])
    client.send(POST[-2:])
    assert rig.app.seen[0].small == b"hello"
    assert rig.app.bodies == [b"hello"]


def test_the_body_is_given_back_when_the_reply_starts() -> None:
    rig = Rig()
    rig.connect(POST)
    rig.link().send(OK)
    x = rig.app.seen[0]
    assert x.small is None
    assert x.reserved == 0
    assert x.body is not None
    assert x.body.small is None


def test_a_body_nobody_looked_at_is_never_made() -> None:
    rig = Rig()
    rig.app.on_body = lambda x: x.forward(
        rig.upstream, target=x.target, drop=frozenset(), add=(), body=x.small
    )
    client = rig.connect(POST)
    assert rig.link().got().endswith(b"content-length: 5\r\n\r\nhello")
    rig.app.bodies.clear()
    rig.link().send(OK)
    assert client.got().endswith(b"ok")
