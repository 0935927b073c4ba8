"""Requests by the thousand: valid ones, classics of smuggling, and mutations; and what h11 reads in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11

if TYPE_CHECKING:
    from random import Random

Message = tuple[bytes, bytes, tuple[tuple[bytes, bytes], ...], bytes]

_METHODS = [b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"PATCH"]
_TARGETS = [
    b"/",
    b"/v1/chat/completions",
    b"/api/ps?x=%20y",
    b"/a/../b",
    b"/%2e%2e/",
    b"/q?a=b&c=d",
    b"/~u;p=1",
]
_FIELDS = [
    b"Accept: */*",
    b"User-Agent: client/1.0 (x; y)",
    b"Authorization: Bearer abc",
    b"Content-Type: application/json",
    b"X-Empty:",
    b"X-Spaces:   a  b  \t",
    b"X-Obs: caf\xe9",
    b"Connection: keep-alive",
    b"Connection: X-Hop, close",
    b"X-Hop: 1",
    b"Accept-Encoding: gzip, br",
    b"TE: trailers",
    b"Cookie: a=b; c=d",
    b"x-repeated: 1",
    b"X-Repeated: 2",
    b"Expect: 100-continue",
]
_LENGTHS = [
    b"Content-Length: %d", b"Content-Length:%d", b"content-length: +%d", b"Content-Length: -%d",
    b"Content-Length: %d, %d", b"Content-Length: 0x%d", b"Content-Length: %d ", b"Content-Length : %d",
    b"Content-Length: %d\r\nContent-Length: %d", b"Content-Length: %d\r\nContent-Length: 0",
    b"Content-Length: %d 0", b"Content-Length: ", b"Content_Length: %d", b"\tContent-Length: %d",
    b"Content-Length: 00%d", b"Content-Length: %d\0", b"Content-Length: 1%018d0",
]  # fmt: skip
_CODINGS = [
    b"Transfer-Encoding: chunked", b"Transfer-Encoding: Chunked", b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: xchunked", b"Transfer-Encoding : chunked",
    b"Transfer-Encoding:\tchunked", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked;q=1", b"Transfer-Encoding:\r\n chunked",
    b"Transfer-Encoding: \x0bchunked", b"X: y\nTransfer-Encoding: chunked",
    b"X: y\rTransfer-Encoding: chunked", b"Transfer-Encoding:", b"transfer_encoding: chunked",
    b"Transfer-Encoding: cow",
]  # fmt: skip
_CHUNKED = [
    b"5\r\nhello\r\n0\r\n\r\n", b"05\r\nhello\r\n0\r\n\r\n", b"5;x=y\r\nhello\r\n0\r\n\r\n",
    b"5\r\nhello\r\n0\r\nT: v\r\n\r\n", b"0\r\n\r\n", b"5\r\nhelloXX0\r\n\r\n",
    b"5 \r\nhello\r\n0\r\n\r\n", b"0x5\r\nhello\r\n0\r\n\r\n", b"-5\r\nhello\r\n0\r\n\r\n",
    b"5\nhello\n0\n\n", b"5\r\nhello\r\n0\r\n", b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    b"\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\nbad trailer\r\n\r\n",
    b"5\r\nhello\r\n0\r\n T: v\r\n\r\n", b"g\r\nhello\r\n0\r\n\r\n", b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    b"5\r\rhello\r\n0\r\n\r\n", b"2\r\nhe\r\n3\r\nllo\r\n00\r\n\r\n", b"5\r\nhello0\r\n\r\n",
]  # fmt: skip
_NASTY = [
    b"\0", b"\n", b"\r", b"\r\n", b" ", b"\t", b":", b"#", b"\r\n ", b"\x7f", b"\xff", b",", b"HTTP/1.1",
    b"0", b"GET", b"\r\n\r\n", b"Host: x\r\n", b"\x0b", b"\x85",
]  # fmt: skip
_LINES = [
    b"GET /", b"GET / HTTP/0.9", b"GET / HTTP/2.0", b"GET / HTTP/1.2", b"GET  / HTTP/1.1",
    b"GET /a b HTTP/1.1", b"GET /#f HTTP/1.1", b"GET / http/1.1", b"GET\t/\tHTTP/1.1", b" GET / HTTP/1.1",
    b"GET / HTTP/1.1 ", b"GET http://other/ HTTP/1.1", b"GET * HTTP/1.1", b"CONNECT other:443 HTTP/1.1",
    b"G@T / HTTP/1.1", b"PRI * HTTP/2.0", b"GET /\xe9 HTTP/1.1", b"\r\nGET / HTTP/1.1", b"GET x HTTP/1.1",
]  # fmt: skip
_HOSTS = [
    b"", b"Host: a\r\nHost: b\r\n", b"Host: a b\r\n", b"Host: a/b\r\n", b"Host: a@b\r\n", b"Host : a\r\n",
    b"Host: \r\n", b"Host: a,b@\r\n", b"Host:\r\n a\r\n", b"Host: a\0\r\n", b"Host: [::1\r\n",
    b"Host: a:b\r\n", b"HOST: a\r\nhost: a\r\n",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """Bytes of a client; `valid` is how many requests in them have to be served, None where that is open."""

    raw: bytes
    valid: int | None
    classic: bool = False  # must not reach an upstream at all


def valid_request(rng: Random, *, last: bool = True) -> bytes:
    method = rng.choice(_METHODS)
    fields = [b"Host: " + rng.choice([b"proxy", b"127.0.0.1:8080", b"[::1]:80", b"a-b.example"])]
    chosen = rng.sample(_FIELDS, rng.randrange(6))
    if not last:
        chosen = [f for f in chosen if b"close" not in f]
    fields += chosen
    body = b""
    kind = rng.randrange(3)
    if kind == 1 or (kind == 0 and method == b"POST"):
        body = rng.randbytes(rng.randrange(200))
        fields.append(b"Content-Length: %d" % len(body))
    elif kind == 2:
        for _ in range(rng.randrange(4)):
            piece = rng.randbytes(rng.randrange(1, 60))
            body += b"%x%b\r\n%b\r\n" % (len(piece), rng.choice([b"", b"", b";ext=1"]), piece)
        body += b"0\r\n" + rng.choice([b"", b"", b"X-Trailer: v\r\n"]) + b"\r\n"
        fields.append(b"Transfer-Encoding: chunked")
    rng.shuffle(fields)
    return method + b" " + rng.choice(_TARGETS) + b" HTTP/1.1\r\n" + b"\r\n".join(fields) + b"\r\n\r\n" + body


def _fill(template: bytes, number: int) -> bytes:
    return template.replace(b"%018d", b"%018d" % number).replace(b"%d", b"%d" % number)


def classic(rng: Random) -> Case:
    """One of the known ways to make two parties disagree."""
    hidden = b"GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
    kind = rng.randrange(5)
    if kind == 0:  # both framings
        length, coding = _fill(rng.choice(_LENGTHS), rng.choice([0, 5, 60])), rng.choice(_CODINGS)
        pair = [length, coding]
        rng.shuffle(pair)
        version = rng.choice([b"1.1", b"1.1", b"1.0"])
        head = b"POST /x HTTP/" + version + b"\r\nHost: a\r\n" + b"\r\n".join(pair) + b"\r\n\r\n"
        return Case(head + rng.choice(_CHUNKED) + hidden, None)
    if kind == 1:
        head = b"POST /x HTTP/1.1\r\nHost: a\r\n" + _fill(rng.choice(_LENGTHS), 5) + b"\r\n\r\n"
        return Case(head + b"hello" + hidden, None)
    if kind == 2:
        version = rng.choice([b"1.1", b"1.1", b"1.1", b"1.0"])
        head = b"POST /x HTTP/" + version + b"\r\nHost: a\r\n" + rng.choice(_CODINGS) + b"\r\n\r\n"
        return Case(head + rng.choice(_CHUNKED) + hidden, None)
    if kind == 3:
        return Case(rng.choice(_LINES) + b"\r\nHost: a\r\n\r\n" + hidden, 0, classic=True)
    return Case(b"GET /x HTTP/1.1\r\n" + rng.choice(_HOSTS) + b"\r\n" + hidden, 0, classic=True)


def mutated(rng: Random) -> Case:
    raw = bytearray(valid_request(rng) + (valid_request(rng) if rng.random() < 0.3 else b""))
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(raw))
        action = rng.randrange(3)
        if action == 0:
            del raw[at : at + rng.randrange(1, 4)]
        elif action == 1:
            raw[at:at] = rng.choice(_NASTY)
        else:
            raw[at : at + 1] = rng.choice(_NASTY)
        if not raw:
            raw += b"x"
    return Case(bytes(raw), None)


def cases(rng: Random, number: int) -> list[Case]:
    made: list[Case] = []
    for i in range(number):
        kind = i % 4
        if kind == 0:
            made.append(Case(valid_request(rng), 1))
        elif kind == 1:
            count = rng.randrange(2, 5)
            requests = [valid_request(rng, last=n == count - 1) for n in range(count)]
            made.append(Case(b"".join(requests), count))
        elif kind == 2:
            made.append(classic(rng))
        else:
            made.append(mutated(rng))
    return made


def read_by_h11(raw: bytes) -> list[Message]:
    """The complete requests h11 finds, up to the first error or the end of the connection."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(raw)
    found: list[Message] = []
    request: h11.Request | None = None
    body = b""
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                request, body = event, b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                assert request is not None
                fields = tuple((bytes(n), bytes(v)) for n, v in request.headers)
                found.append((bytes(request.method), bytes(request.target), fields, body))
                connection.send(h11.Response(status_code=404, headers=[("content-length", "0")]))
                connection.send(h11.EndOfMessage())
            elif event is h11.PAUSED:
                if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                    return found
                connection.start_next_cycle()
            else:
                return found
    except h11.RemoteProtocolError:
        return found
