"""An independent judge: may this request, as it reached an upstream, have been forwarded?

It knows nothing of how the product decides. It reads with Python's own json and email, and compares with the
lists of `fuzz_routes`; a rule here is a sentence of docs/routes.md.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from email import message_from_bytes
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from standins.fuzz_routes import DIALECTS
from standins.lending_rig import BORROW, BOTH, READ, RELAY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from standins.fuzz_cases import Fuzzed

HOP = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect"}
OURS = {"x-vacancy-borrower", "authorization", "x-api-key"}
WORK = {"json", "form", "graph", "upload", "work_socket"}
MAX_KEEP_ALIVE = 1800
PLACING = {"num_gpu", "main_gpu"}
"""Options of Ollama that go: where a model is put is not for a borrower to say."""
_CLOUD = re.compile(r"(:\s*cloud|-cloud)\s*\Z", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Reached:
    """One request as the upstream has it, and the job in the ledger that it belongs to."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    job: tuple[str | None, str] | None
    """Model and borrower; None: there is no job."""

    def all(self, name: str) -> list[str]:
        return [value for have, value in self.headers if have == name]


class TwiceError(ValueError):
    """A key that occurs twice, for a server that may fold case."""


def violations(dialect: str, authority: str, seen: Reached, case: Fuzzed | None) -> list[str]:
    """Everything about it that should not be; `case` is what was sent, where that is known."""
    return list(_violations(dialect, authority, seen, case))


def _violations(dialect: str, authority: str, seen: Reached, case: Fuzzed | None) -> Iterator[str]:
    routes = DIALECTS[dialect]
    websocket = bool(seen.all("upgrade"))
    path, mark, query = seen.target.partition("?")
    kind = routes.kind(seen.method, path, websocket)
    if kind is None:
        yield f"{seen.method} {seen.target} is not open"
        return
    if routes.kind(seen.method, unquote(path), websocket) != kind:
        yield f"{path} is another route when it is decoded"
    if mark and (kind in WORK | {"bare_read", "shown"}):
        yield f"a query reached {path}: {query}"
    yield from _headers(dialect, authority, seen, kind, case)
    if (kind in WORK) is not (seen.job is not None):
        yield f"{kind}, and its job is {seen.job}"
    if case is not None:
        if case.denied:
            yield "its sender has no token that may borrow"
        relay = case.relay
    else:
        relay = True  # not known: give way
    yield from _body(dialect, seen, kind, relay=relay)
    if case is not None and case.body is not None:
        yield from _unchanged(seen, kind, case.body)
    if dialect == "ollama" and path.startswith("/v1/models/") and _CLOUD.search(unquote(path)):
        yield f"a model of the cloud is asked for in {path}"


def _headers(dialect: str, authority: str, seen: Reached, kind: str, case: Fuzzed | None) -> Iterator[str]:
    if seen.all("host") != [authority]:
        yield f"Host is {seen.all('host')}"
    names = {name for name, _ in seen.headers}
    allowed = {"connection", "upgrade"} if kind.endswith("socket") else set()
    routes = DIALECTS[dialect]
    gone = (HOP - allowed) | OURS | set(routes.no_headers)
    if case is not None and not case.relay and kind in WORK:
        gone |= set(routes.no_relay_headers)
    there = sorted(name for name in names if name in gone or name.startswith("proxy-"))
    if there:
        yield f"these fields reached it: {there}"
    values = " ".join(value for name, value in seen.headers if name != "cookie")
    if any(token in values for token in (BORROW, READ, RELAY, BOTH)):
        yield "a token reached it"
    if kind.endswith("socket"):
        if seen.all("upgrade") != ["websocket"] or seen.all("connection") != ["Upgrade"] or seen.body:
            yield "it is no plain handshake"
        if seen.all("sec-websocket-version") != ["13"] or len(seen.all("sec-websocket-key")) != 1:
            yield "its server may see another handshake"
        return
    lengths = seen.all("content-length")
    if seen.body and lengths != [str(len(seen.body))]:
        yield f"Content-Length is {lengths} for {len(seen.body)} bytes"
    if kind in WORK and any(value.strip().lower() != "identity" for value in seen.all("content-encoding")):
        yield "it is compressed"


def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key.casefold() for key, _ in found}) != len(found):
        raise TwiceError([key for key, _ in found])
    return dict(found)


def top_level(body: bytes) -> dict[str, Any]:
    """The one object in `body`; its own keys differ however case is folded, those below may not."""
    depth = json.JSONDecoder(object_pairs_hook=lambda found: found)
    text = body.decode("utf-8")
    found, end = depth.raw_decode(text.lstrip(" \t\r\n"))
    if text.lstrip(" \t\r\n")[end:].strip(" \t\r\n"):
        raise ValueError("something follows the object")
    if not text.lstrip(" \t\r\n").startswith("{"):
        raise ValueError("it is no object")
    pairs(found)
    document: dict[str, Any] = json.loads(text)
    return document


def _body(dialect: str, seen: Reached, kind: str, *, relay: bool) -> Iterator[str]:
    if kind == "form":
        yield from _form(seen)
        return
    if kind not in {"json", "graph", "shown"}:
        return
    types = seen.all("content-type")
    if len(types) > 1 or any(not value.split(";")[0].strip().lower().endswith("json") for value in types):
        yield f"Content-Type is {types}"
    try:
        document = top_level(seen.body)
    except (ValueError, RecursionError) as error:
        yield f"no plain JSON object: {error!r}: {seen.body[:200]!r}"
        return
    strange = [key for key in document if key.casefold() == "model" and key != "model"]
    if strange and kind != "graph":
        yield f"the model is named in {strange}"
    yield from _asks(dialect, document, seen, kind)
    if dialect == "openai" and not relay and "priority" in document:
        yield "it has a priority"


def _asks(dialect: str, document: dict[str, Any], seen: Reached, kind: str) -> Iterator[str]:
    if kind == "graph":
        yield from _graph(document, seen)
    elif dialect == "ollama":
        yield from _ollama(document, seen)
    elif seen.job is not None and seen.job[0] != document.get("model"):
        yield f"the model is {document.get('model')!r}, and judged was {seen.job[0]!r}"
    if seen.target in {"/v1/responses", "/responses"} and document.get("background") not in (None, False):
        yield "a background response"


def _form(seen: Reached) -> Iterator[str]:
    kinds = seen.all("content-type")
    if len(kinds) != 1:
        yield f"Content-Type is {kinds}"
        return
    message = message_from_bytes(b"Content-Type: " + kinds[0].encode("latin-1") + b"\r\n\r\n" + seen.body)
    parts = message.get_payload() if message.is_multipart() else []
    names = [
        part.get_param("name", header="content-disposition") for part in parts if not isinstance(part, str)
    ]
    named = len(re.findall(rb'name\*?\s*=\s*["\']?\s*mod', seen.body, re.IGNORECASE))
    if names.count("model") > 1 or named > 1:
        yield f"the form may name several models: {names}"
    if not message.is_multipart() or not names:
        yield "no form"
    models = [
        (part.get_payload(decode=True), part.get_content_charset()) for part in parts
        if not isinstance(part, str) and part.get_param("name", header="content-disposition") == "model"
    ]  # fmt: skip
    if "_charset_" in names:
        yield "a field says in which charset the form is"
    if seen.job is not None and models:
        value, charset = models[0]
        assert isinstance(value, bytes)
        sent = value.decode(charset or "utf-8", "replace")
        if seen.job[0] is None or canonical(seen.job[0]) != canonical(sent):
            yield f"the form says {sent!r}, and judged was {seen.job[0]!r}"
    elif seen.job is not None and seen.job[0] is not None and not models:
        yield f"the form names no model, and judged was {seen.job[0]!r}"


def _graph(document: dict[str, Any], seen: Reached) -> Iterator[str]:
    if document.keys() & {"number", "front"}:
        yield "it jumps the queue"
    if not _UUID.fullmatch(str(document.get("prompt_id"))):
        yield f"its prompt id is {document.get('prompt_id')!r}"
    assert seen.job is not None
    inputs = [node.get("inputs") or {} for node in document["prompt"].values()]
    main = [value for i in inputs for key, value in i.items() if key in {"ckpt_name", "unet_name"}]
    if main and all(isinstance(value, str) and value for value in main) and seen.job[0] not in main:
        yield f"the graph loads {main}, and judged was {seen.job[0]!r}"


def canonical(name: str) -> str:
    """The short form of an Ollama name, in the way of routes.md."""
    text = name.strip().lower()
    path, colon, tag = text.rpartition(":")
    if not colon or "/" in tag:
        path, tag = text, "latest"
    for prefix in ("registry.ollama.ai/", "library/"):
        path = path.removeprefix(prefix)
    return f"{path}:{tag}"


def _ollama(document: dict[str, Any], seen: Reached) -> Iterator[str]:
    for key in ("model", "name"):
        if _CLOUD.search(str(document.get(key, ""))) and (key == "model" or seen.target == "/api/show"):
            yield f"a model of the cloud: {document[key]!r}"
    model = document.get("model")
    if seen.job is not None:
        judged = seen.job[0]
        plain = isinstance(model, str) and re.fullmatch(r"[\w./ -]+(:[\w.-]+)?", model, re.ASCII)
        if plain and (judged is None or canonical(judged) != canonical(str(model))):
            yield f"the model is {model!r}, and judged was {judged!r}"
        if not isinstance(model, str) and judged is not None:
            yield f"the model is {model!r}, and judged was {judged!r}"
    if seen.target in {"/api/generate", "/api/chat", "/api/embed", "/api/embeddings"}:
        yield from _native(document, seen)


def _native(document: dict[str, Any], seen: Reached) -> Iterator[str]:
    """What there is on Ollama's own routes alone."""
    options = document.get("options")
    if isinstance(options, dict) and not PLACING.isdisjoint(options):
        yield "it says where its model goes"
    if "keep_alive" not in document:
        return
    keep = document["keep_alive"]
    if isinstance(keep, (int, float)) and not 0 <= keep <= MAX_KEEP_ALIVE:
        yield f"keep_alive is {keep!r}"
    if isinstance(keep, str) and keep.startswith("-") and keep.strip("-0smh."):
        yield f"keep_alive is {keep!r}"
    nothing = {"/api/generate": not document.get("prompt"), "/api/chat": not document.get("messages")}
    if nothing.get(seen.target) and keep in {0, "0", "0s"} and keep is not False:
        yield "it unloads the model"


def _unchanged(seen: Reached, kind: str, body: bytes) -> Iterator[str]:
    """What was forwarded is what was sent, but for the fields that go or are bounded."""
    if kind in {"form", "upload", "read", "bare_read"}:
        if seen.body != body:
            yield "its body was changed"
        return
    if kind not in {"json", "graph", "shown"} or seen.body == body:
        return
    try:
        sent, got = top_level(body), top_level(seen.body)
    except (ValueError, RecursionError):
        yield f"what was sent is no plain object: {body[:200]!r}"
        return
    may_go = {"priority"} | ({"number", "front", "prompt_id"} if kind == "graph" else set())
    if _rest(sent, may_go) != _rest(got, may_go):
        yield "a field was changed that should pass"


def _rest(document: dict[str, Any], may_go: set[str]) -> str:
    """All that must pass."""
    kept = {key: value for key, value in document.items() if key not in may_go | {"keep_alive"}}
    options = kept.get("options")
    if isinstance(options, dict):
        kept["options"] = {key: value for key, value in options.items() if key not in PLACING}
    return repr(kept)
