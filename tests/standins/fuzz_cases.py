"""Requests of a fuzzed listener, from a seed: what clients send, and what nobody should.

A *framed* case is one request that any server cuts out of its connection in the same way: the listener must
answer it once and go on. The others may end the connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from standins.fuzz_bodies import form_body, json_body
from standins.fuzz_routes import DIALECTS
from standins.http_corpus import classic, mutated
from standins.lending_rig import BORROW, READ, RELAY
from standins.websocket_text import handshake

if TYPE_CHECKING:
    from random import Random

    from standins.fuzz_routes import Open


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """One request, and what is known of it."""

    raw: bytes
    kind: str
    framed: bool = True
    head_only: bool = False
    body: bytes | None = None
    relay: bool = False
    denied: bool = False
    """It has no token that may borrow."""


_METHODS = (
    "POST",
    "GET",
    "HEAD",
    "PUT",
    "DELETE",
    "PATCH",
    "OPTIONS",
    "TRACE",
    "post",
    "Get",
    "WS",
    "PROPFIND",
    "QUERY",
)
_TOKENS = (
    b"Authorization: Bearer %b" % BORROW.encode(), b"x-api-key: %b" % BORROW.encode(),
    b"AUTHORIZATION: bearer  %b" % BORROW.encode(),
    b"Authorization: Bearer %b" % RELAY.encode(),
)  # fmt: skip
_NO_TOKENS = (
    b"", b"Authorization: Bearer x", b"Authorization: %b" % BORROW.encode(),
    b"Authorization: Basic %b" % BORROW.encode(),
    b"Authorization: Bearer %b" % READ.encode(),
    b"Authorization: Bearer %b\r\nx-api-key: %b" % (BORROW.encode(), RELAY.encode()),
    b"Authorization: Bearer %b\r\nAuthorization: Bearer %b" % (BORROW.encode(), BORROW.encode()),
    b"Proxy-Authorization: Bearer %b" % BORROW.encode(),
    b"Cookie: token=%b" % BORROW.encode(), b"x_api_key: %b" % BORROW.encode(),
)  # fmt: skip
_EXTRA = (
    b"X-Vacancy-Borrower: pool/other", b"x-vacancy-borrower:", b"X-Vllm-Priority: -9",
    b"X-Conversation-Id: c",
    b"X-Amzn-SageMaker-Adapter-Identifier: huge", b"Proxy-Connection: keep-alive", b"Proxy-Authenticate: x",
    b"TE: trailers",
    b"Trailer: X", b"Keep-Alive: 5", b"Connection: keep-alive", b"Connection: X-A, Authorization",
    b"Connection: Content-Type",
    b"Connection: host", b"Connection: x-vacancy-borrower", b"X-A: 1", b"Expect: 100-continue",
    b"expect: 200-ok", b"Accept-Encoding: gzip, br",
    b"Range: bytes=0-1", b"If-Range: x", b"Origin: https://evil.example", b"Sec-Fetch-Site: cross-site",
    b"Sec-Fetch-Mode: no-cors",
    b"Upgrade: h2c", b"Upgrade: TLS/1.0", b"HTTP2-Settings: x", b"Content-Encoding: gzip",
    b"Content-Encoding: identity", b"Content-Encoding: zstd",
    b"X-Forwarded-For: 127.0.0.1", b"X-HTTP-Method-Override: DELETE", b"X-Original-URL: /slots",
    b"Cookie: a=b; c=d", b"X-Empty:",
    b"X-Latin: caf\xe9", b"Content-Length2: 5", b"Content_Length: 5", b"Transfer_Encoding: chunked",
    b"Accept: */*", b"User-Agent: f/1",
    b"Content-Type: multipart/form-data; boundary=zz", b"Content-Type: application/json",
)  # fmt: skip
_TYPES = (
    b"application/json", b"application/json; charset=utf-8", b"text/plain",
    b"application/x-www-form-urlencoded", b"", b"text/html",
    b"application/json; charset=utf-16", b"application/vnd.api+json", b"APPLICATION/JSON",
    b"application/json, text/html", b"text/json",
    b"application/json; charset=utf-8; charset=utf-7", b"multipart/form-data; boundary=b",
    b"multipart/form-data,x+json", b"application/jsonx",
    b"application/json;", b'application/json; a="b;charset=utf-16"', b"*/*", b"application/json\xe9",
)  # fmt: skip
_QUERIES = (
    b"?",
    b"?beta=true",
    b"?model=huge",
    b"?MODEL=huge",
    b"?clientId=a",
    b"?reload=1",
    b"?fail_on_no_slot=1",
    b"?%6dodel=huge",
    b"?a=1&a=2",
    b"?/../x",
    b"?;x",
)
_HEXED = "".join(f"%{byte:02x}" for byte in b"slots")
_WRAPS = (
    "/x/..{0}", "/.{0}", "/{0}", "{0}/", "{0}/.", "{0}/..", "{0}//", "{0};a=b", "{0}%2f", "{0}%00", "{0}%20",
    "{0}%", "{0}%zz", "{0}%3f",
    "{0}.json", "{0}\\", "/%2e%2e{0}", "{0}/%2e%2e", "{0}%2f..%2f..", "/..{0}", "{0}#", "{0}*", "{0}~",
    "{0}%23", "{0}%25", "{0}|",
    "http://127.0.0.1{0}", "//evil{0}", "{0}%0d%0aX:1", "{0}:80", "{0}%c0%ae", "{0}%ef%bc%8f",
    "/" + _HEXED + "{0}",
)  # fmt: skip


def cases(rng: Random, dialect: str) -> Fuzzed:
    """The next request."""
    routes = DIALECTS[dialect]
    kind = rng.random()
    if kind < 0.06:
        return Fuzzed(_aimed(rng, routes, classic(rng).raw), "classic", framed=False)
    if kind < 0.10:
        return Fuzzed(_aimed(rng, routes, mutated(rng).raw), "mutated", framed=False)
    if kind < 0.16:
        return _socket(rng, routes)
    if kind < 0.22:
        return _broken(rng, _plain(rng, dialect, routes))
    return _plain(rng, dialect, routes)


def _aimed(rng: Random, routes: Open, raw: bytes) -> bytes:
    """What was made for any listener, with a token and paths of this one."""
    work = rng.choice(routes.json + routes.form + routes.graph).encode()
    read = rng.choice(routes.reads + routes.bare_reads).replace("{}", "a").encode()
    for old, new in ((b"/x", work), (b"/hidden", read), (b"/v1/chat/completions", work)):
        raw = raw.replace(old, new)
    return raw.replace(b"Host:", _TOKENS[0] + b"\r\nHost:")


def _token(rng: Random) -> tuple[list[bytes], bool, bool]:
    """The lines; whether it is the gateway's; whether it is none."""
    if rng.random() < 0.04:
        line = rng.choice(_NO_TOKENS)
        return ([line] if line else []), False, True
    line = _TOKENS[0] if rng.random() < 0.7 else rng.choice(_TOKENS)
    return [line], RELAY.encode() in line, False


def _path(rng: Random, path: str) -> bytes:
    path = path.replace(
        "{}",
        rng.choice(
            [
                "a",
                "01234567-89ab-4def-8123-456789abcdef",
                "m:cloud",
                "m%3acloud",
                "a%2fb",
                "..",
                "%2e",
                "a.b",
                "m-cloud",
            ]
        ),
    )
    dice = rng.random()
    if dice < 0.70:
        return path.encode()
    if dice < 0.80:
        at = rng.randrange(1, len(path)) if len(path) > 1 else 0
        return (path[:at] + f"%{ord(path[at]):02x}" + path[at + 1 :]).encode() if at else b"/%2f"
    if dice < 0.85:
        return path.upper().encode()
    return rng.choice(_WRAPS).format(path).encode("latin-1")


def _plain(rng: Random, dialect: str, routes: Open) -> Fuzzed:
    groups = [
        ("json", routes.json),
        ("form", routes.form),
        ("graph", routes.graph),
        ("upload", routes.upload),
        ("shown", routes.shown),
    ]
    work = [(shape, path) for shape, paths in groups for path in paths]
    reads = routes.reads + routes.bare_reads
    dice = rng.random()
    shape, path = (
        rng.choice(work) if dice < 0.6 else ("", rng.choice(reads if dice < 0.78 else routes.closed))
    )
    method = "POST" if shape else "GET"
    if rng.random() < 0.12:
        method = rng.choice(_METHODS)
    body: bytes | None = None
    lines, relay, denied = _token(rng)
    if shape in {"form", "upload"}:
        body, kind = form_body(rng)
        lines.append(b"Content-Type: " + kind)
    elif shape or rng.random() < 0.1:
        body = json_body(rng, dialect)
        kind = rng.choice(_TYPES) if rng.random() < 0.2 else b"application/json"
        if kind:
            lines.append(b"Content-Type: " + kind)
    lines += rng.sample(_EXTRA, rng.choice([0, 0, 0, 1, 1, 2, 5]))
    target = _path(rng, path) + (rng.choice(_QUERIES) if rng.random() < 0.12 else b"")
    return _written(rng, method, target, lines, body, relay=relay, denied=denied)


def _written(
    rng: Random,
    method: str,
    target: bytes,
    lines: list[bytes],
    body: bytes | None,
    *,
    relay: bool,
    denied: bool,
) -> Fuzzed:
    payload = b""
    if body is not None:
        if rng.random() < 0.85:
            lines.append(
                rng.choice([b"Content-Length: %d", b"content-length:%d", b"CONTENT-LENGTH:  %d "]) % len(body)
            )
            payload = body
        else:
            lines.append(b"Transfer-Encoding: chunked")
            step = rng.choice([7, 100, 4096])
            pieces = [body[at : at + step] for at in range(0, len(body), step)]
            payload = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"
    rng.shuffle(lines)
    framed = target[:1] == b"/" and b"#" not in target  # what no request line can hold ends the connection
    raw = b"%b %b HTTP/1.1\r\nHost: proxy\r\n%b\r\n%b" % (
        method.encode(), target, b"".join(line + b"\r\n" for line in lines), payload,
    )  # fmt: skip
    return Fuzzed(raw, "plain", framed, method == "HEAD", body, relay, denied)


def _broken(rng: Random, case: Fuzzed) -> Fuzzed:
    """The framing of a request that would be served is spoiled."""
    head, _, rest = case.raw.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    action = rng.randrange(9)
    if action == 0:
        lines.append(
            rng.choice(
                [
                    b"Content-Length: 0",
                    b"Content-Length: 5",
                    b"Transfer-Encoding: chunked",
                    b"Transfer-Encoding: gzip, chunked",
                    b"Transfer-Encoding: identity",
                    b"Content-Length: +1",
                    b"Content-Length: 1, 1",
                    b"Content-Length: 99999999999999999999",
                    b"Transfer-Encoding:\x0bchunked",
                    b"Content-Length: 70000000",
                ]
            )
        )
    elif action == 1:
        lines.insert(0, rng.choice([b"Host: other", b" Host: x", b"Host : x", b"Host: a, b", b"host: proxy"]))
    elif action == 2:
        lines = [line for line in lines if not line.startswith(b"Host")]
    elif action == 3:
        first = first.replace(
            b"HTTP/1.1",
            rng.choice([b"HTTP/1.0", b"HTTP/2.0", b"HTTP/0.9", b"http/1.1", b"HTTP/1.1 x", b"HTTP/1.2", b""]),
        )
    elif action == 4:
        at = rng.randrange(len(lines))
        lines[at] = lines[at].replace(
            b": ", rng.choice([b" : ", b":\n", b"\t:", b":\r\n ", b":\0", b"\r: "]), 1
        )
    elif action == 5:
        lines += [b"X-%d: y" % n for n in range(rng.choice([90, 101, 500]))]
    elif action == 6:
        lines.append(b"X-Long: " + b"a" * rng.choice([60_000, 66_000]))
    elif action == 7:
        rest = rest[: rng.randrange(len(rest) + 1)] if rest else b"GET /smuggled HTTP/1.1\r\nHost: p\r\n\r\n"
    else:
        first = (
            rng.choice(
                [
                    b" ",
                    b"\r\n",
                    b"\0",
                    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                ]
            )
            + first
        )
    return Fuzzed(b"\r\n".join([first, *lines]) + b"\r\n\r\n" + rest, "broken", framed=False)


def _socket(rng: Random, routes: Open) -> Fuzzed:
    """The handshake of a WebSocket, good or not; what follows it may be frames or a request."""
    paths = routes.sockets + routes.work_sockets or ("/ws",)
    path = rng.choice(
        paths if rng.random() < 0.7 else routes.closed + routes.reads + routes.bare_reads + routes.json
    )
    target = _path(rng, path) + (rng.choice(_QUERIES) if rng.random() < 0.3 else b"")
    changes: dict[str, bytes | None] = {}
    if rng.random() < 0.5:
        name, values = rng.choice([
            ("upgrade", [b"websocket, h2c", b"WEBSOCKET", b"websocket/13", b"h2c", None]),
            ("connection", [b"Upgrade", b"close", b"Upgrade, Host", b"Upgrade, Sec-WebSocket-Key", None]),
            ("sec_websocket_key", [b"x", b"", None, b"AAAAAAAAAAAAAAAAAAAAAA=="]),
            ("sec_websocket_version", [b"8", b"13, 8", None, b"13"]),
            ("content_length", [b"0", b"3"]), ("transfer_encoding", [b"chunked"]),
            ("origin", [b"https://evil.example", b"null", b"http://proxy"]),
            ("sec_websocket_protocol", [b"a, b", b"http"]), ("sec_fetch_site", [b"cross-site"]),
            ("x_vacancy_borrower", [b"pool/x"]), ("expect", [b"100-continue"]),
        ])  # fmt: skip
        changes[name] = rng.choice(values)
    lines, relay, denied = _token(rng)
    raw = handshake(
        target, method=rng.choice([b"GET"] * 9 + [b"POST"]), minor=rng.choice([1] * 9 + [0]), **changes
    )
    raw = raw[:-2] + b"".join(line + b"\r\n" for line in lines) + b"\r\n"
    raw += rng.choice([b"", b"\x81\x85aaaahello", b"GET /smuggled HTTP/1.1\r\nHost: p\r\n\r\n", b"abc"])
    return Fuzzed(raw, "socket", framed=False, relay=relay, denied=denied)
