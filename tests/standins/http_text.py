"""HTTP/1.1 as text, for tests that talk to an engine without sockets or past every client library."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

CHAT = "/v1/chat/completions"


@dataclass(frozen=True)
class Answer:
    """One complete answer, or what there is of one (`whole` false)."""

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool = True

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)["error"]
        return found

    @property
    def reason(self) -> str:
        return self.headers.get("x-vacancy-reason", "")


def request(
    path: str = CHAT,
    body: object = None,
    *,
    method: str = "POST",
    token: str | None = None,
    headers: dict[str, str] | None = None,
) -> bytes:
    """A request; `body` bytes go as they are, anything else as JSON."""
    lines = {"host": "proxy"}
    if token is not None:
        lines["authorization"] = f"Bearer {token}"
    raw = b""
    if body is not None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines["content-length"] = str(len(raw))
        lines["content-type"] = "application/json"
    lines |= {name.lower(): value for name, value in (headers or {}).items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + raw


def head_of(raw: bytes) -> tuple[str, dict[str, str], bytes]:
    """First line, fields and what follows, of a request or an answer."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return first, fields, rest


def answer(raw: bytes) -> Answer:
    """The first answer in `raw`, of a request that was not HEAD."""
    first, fields, rest = head_of(raw)
    status = int(first.split(" ")[1])
    if fields.get("transfer-encoding") == "chunked":
        body, whole = unchunked(rest)
        return Answer(status, fields, body, whole)
    length = int(fields.get("content-length", 0))
    return Answer(status, fields, rest[:length], len(rest) >= length)


def unchunked(raw: bytes) -> tuple[bytes, bool]:
    """The payload, and whether the last chunk is there."""
    body = b""
    while raw:
        size, _, raw = raw.partition(b"\r\n")
        if not (length := int(size, 16)):
            return body, True
        body, raw = body + raw[:length], raw[length + 2 :]
    return body, False


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def reply(body: object = b"{}", status: int = 200, kind: str = "application/json", **headers: str) -> bytes:
    """A server's complete answer."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {len(raw)}\r\n{more}\r\n"
    return head.encode("latin-1") + raw


STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
WORD = chunk(b'data: {"choices":[{"delta":{"content":"w"},"finish_reason":null}]}\n\n')
DONE = chunk(b"data: [DONE]\n\n")
LAST = b"0\r\n\r\n"
