from __future__ import annotations

import pytest

from vacancy_http.reply import Reply, reply_bytes


def test_a_reply_has_its_length_and_its_connection_line() -> None:
    reply = Reply(404, ((b"content-type", b"text/plain"),), b"none")
    raw = reply_bytes(reply, head_only=False, connection=b"connection: close\r\n")
    assert raw == (
        b"HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\n"
        b"content-length: 4\r\nconnection: close\r\n\r\nnone"
    )


def test_to_head_the_length_is_told_and_the_body_is_not_sent() -> None:
    assert reply_bytes(Reply(200, (), b"abc"), head_only=True, connection=b"") == (
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n"
    )


@pytest.mark.parametrize("status", [204, 304])
def test_statuses_that_have_no_body_get_none(status: int) -> None:
    raw = reply_bytes(Reply(status, (), b"abc"), head_only=False, connection=b"")
    assert raw.endswith(b"\r\n\r\n")
    assert b"content-length" not in raw


def test_a_status_without_a_name() -> None:
    assert reply_bytes(Reply(599, (), b""), head_only=False, connection=b"").startswith(b"HTTP/1.1 599 \r\n")
