"""What a borrower's request asks for, read from exactly the bytes that are forwarded.

Invariant: the body forwarded is the body judged. Where a field has to go, its bytes are cut out and the rest
stays as it came; re-encoding was rejected because numbers, key order and escapes of the sender would change.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from vacancy_dialects import BodyShape, PromptAsk, QueryRule, RouteClass, RunnerAsk
from vacancy_edge import refusals
from vacancy_edge.jsonbody import Top, cut_spans, read_object, walk
from vacancy_edge.multipart import boundary_of, read_form
from vacancy_edge.refusal import Refusal

if TYPE_CHECKING:
    from vacancy_dialects import Match, Route
    from vacancy_edge.jsonbody import Span

MAX_MODEL_NAME: Final = 1024
CARELESS: Final = frozenset({b"application/x-www-form-urlencoded", b"text/plain"})
"""What `curl -d` and a browser's `fetch` call a text when nobody tells them more."""
_STR: Final[msgspec.json.Decoder[str]] = msgspec.json.Decoder(str)
_INT: Final[msgspec.json.Decoder[int]] = msgspec.json.Decoder(int)
_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9a-z-]++"
_JSON_TYPE: Final = re.compile(
    rb"(?:text/json|application/(?:[!#$%&'*.^_`|~0-9a-z+-]+\+)?json)"
    rb"((?:[ \t]*+;[ \t]*+(?:" + _TOKEN + rb"=(?:" + _TOKEN + rb"""|"[^"\\]*+"))?+)*+)"""
)
_CHARSET: Final = re.compile(rb"""; *+charset=("?)(?:utf-?8|us-ascii)\1(?= *(?:;|\Z))""")
_OUTPUT_KEYS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict")
_JUDGED: Final = frozenset({"model", "stream", "background", "n", *_OUTPUT_KEYS})


class Judged(msgspec.Struct, frozen=True):
    """What a body asks for. `forward` is None where the bytes are forwarded as they came.

    `model` None: the body names none, which stands for the server's own. `max_tokens` and `n` are for
    accounting: None where the body does not say, or says it in a way that no server would take. `cls` is
    what the body turned out to ask for: an unload that is written as work is management. `runner` is there
    for Ollama's work, `prompt` for ComfyUI's.
    """

    model: str | None = None
    stream: bool = False
    forward: bytes | None = None
    max_tokens: int | None = None
    n: int | None = None
    cls: RouteClass = RouteClass.WORK
    runner: RunnerAsk | None = None
    prompt: PromptAsk | None = None


_FORM_FIELDS: Final = frozenset({"model", "stream"})
_FORM_WANTED: Final = "Send this route a body of type multipart/form-data with one plain boundary."
NOTHING: Final = Judged()


def retyped(match: Match, content_type: bytes | None) -> bool:
    """Whether the request must go on as `application/json`, whatever its Content-Type says.

    A server that believed in a form would read other fields than were judged.
    """
    route = match.route
    is_json = match.cls is RouteClass.WORK and route is not None and route.shape is BodyShape.JSON
    return is_json and content_type is not None and _kind(content_type) in CARELESS


def _kind(content_type: bytes) -> bytes:
    return content_type.partition(b";")[0].strip().lower()


def judge_head(
    match: Match, content_type: bytes | None, content_encoding: bytes | None, query: bytes | None
) -> Refusal | None:
    """What is wrong with a work request before its body is read; None when nothing is. Other classes pass."""
    route = match.route
    if match.cls is not RouteClass.WORK or route is None:
        return None
    if content_encoding and content_encoding.strip().lower() != b"identity":
        return refusals.content_encoding(content_encoding)
    if query and route.query is QueryRule.REFUSE:
        return refusals.bad_request(
            "This route takes no query string, since it could choose the model. Use the form fields."
        )
    if route.shape is BodyShape.JSON:
        plain = content_type is None or content_type == b"application/json"
        return None if plain else _json_type(content_type or b"")
    if route.shape is BodyShape.MULTIPART and boundary_of(content_type) is None:
        return refusals.bad_request(_FORM_WANTED)
    return None


def judge_body(
    match: Match,
    body: bytes | memoryview,
    content_type: bytes | None,
    content_encoding: bytes | None,
    query: bytes | None,
    *,
    relay: bool = False,
) -> Judged | Refusal:
    """What a complete body of up to 4 MiB asks for (larger ones: `BodyHelper`), or why it is refused.

    Args:
        match: what the table says about the request; only work is read, the rest passes as it came.
        body: the bytes; nothing keeps a reference to them.
        content_type: that header, None if absent.
        content_encoding: that header, None if absent.
        query: the query string, None if absent.
        relay: the request came with the gateway's token, whose priority is believed.
    """
    head = judge_head(match, content_type, content_encoding, query)
    if head is not None:
        return head
    return judge_plain(match, body, content_type, relay)


def judge_plain(
    match: Match, body: bytes | memoryview, content_type: bytes | None, relay: bool, *, counts: bool = True
) -> Judged | Refusal:
    """Like `judge_body`, for a request whose head `judge_head` has passed.

    Without `counts`, `max_tokens` and `n` may be left unread: it is the path of every request.
    """
    route = match.route
    if not counts and match.cls is RouteClass.WORK and route is not None and route.shape is BodyShape.JSON:
        top = read_object(body, _JUDGED, route.relay_fields)
        if isinstance(top, Refusal):
            return top
        if (relay or route.relay_fields.isdisjoint(top)) and "background" not in top:
            model = _model(top)
            stream = "stream" in top and bytes(top["stream"]) == b"true"
            return model if isinstance(model, Refusal) else Judged(model, stream)
    judged = judge_spans(match, body, content_type, relay)
    if isinstance(judged, Refusal):
        return judged
    asks, spans = judged
    return msgspec.structs.replace(asks, forward=without(body, spans)) if spans else asks


def judge_spans(
    match: Match, body: bytes | memoryview, content_type: bytes | None, relay: bool
) -> tuple[Judged, list[Span]] | Refusal:
    """Like `judge_plain`, but names the spans to take out instead of taking them out."""
    route = match.route
    if match.cls is not RouteClass.WORK or route is None or route.shape is BodyShape.NONE:
        return NOTHING, []
    if route.shape is BodyShape.JSON:
        return _judge_json(route, body, relay)
    return _judge_form(route, body, content_type, relay)


def without(body: bytes | memoryview, spans: list[Span]) -> bytes:
    """`body` less the bytes of `spans`, which are in order and do not overlap."""
    kept: list[bytes | memoryview] = []
    at = 0
    for start, end in spans:
        kept.append(body[at:start])
        at = end
    kept.append(body[at:])
    return b"".join(kept)


def _judge_json(route: Route, body: bytes | memoryview, relay: bool) -> tuple[Judged, list[Span]] | Refusal:
    top = read_object(body, _JUDGED, route.relay_fields)
    if isinstance(top, Refusal):
        return top
    if route.background_refused and (refused := _background(top)) is not None:
        return refused
    model = _model(top)
    if isinstance(model, Refusal):
        return model
    spans: list[Span] = []
    if not relay and not route.relay_fields.isdisjoint(top):
        spans = cut_spans(walk(top, body) or {}, route.relay_fields)
    stream = "stream" in top and bytes(top["stream"]) == b"true"
    return Judged(model, stream, None, _output(top), _count(top.get("n"))), spans


def _model(top: Top) -> str | None | Refusal:
    raw = top.get("model")
    if raw is None:
        return None
    try:
        model = _STR.decode(raw)
    except msgspec.MsgspecError:
        if bytes(raw) == b"null":
            return None
        return refusals.bad_request('"model" must be a string.')
    return model if len(model) <= MAX_MODEL_NAME else refusals.bad_request('"model" is too long.')


def _background(top: Top) -> Refusal | None:
    raw = bytes(top.get("background", b"null"))
    if raw in {b"null", b"false"}:
        return None
    if raw == b"true":
        return refusals.background_refused()
    return refusals.bad_request('"background" must be false or left out.')


def _output(top: Top) -> int | None:
    for key in _OUTPUT_KEYS:
        if key in top:
            return _count(top[key])
    return None


def _count(raw: msgspec.Raw | None) -> int | None:
    if raw is None:
        return None
    try:
        value = _INT.decode(raw)
    except msgspec.MsgspecError:
        return None
    return value if value >= 0 else None


def _json_type(content_type: bytes) -> Refusal | None:
    """What a JSON route says to this type. A server must not be able to read another one in it.

    Some look at its first bytes only (`multipart/form-data,x+json`), some at the last of two charsets.
    """
    if _kind(content_type) in CARELESS:
        return None  # judged as JSON, and forwarded as that: `retyped`
    found = _JSON_TYPE.fullmatch(content_type.lower())
    if found is None:
        kind = refusals.shown(content_type)
        return refusals.bad_request(
            f"This route takes JSON, not {kind}. Send it with Content-Type: application/json."
        )
    parameters = found[1]
    if b"charset" in _CHARSET.sub(b"", parameters, count=1):
        return refusals.bad_request("JSON is UTF-8. Send the body as UTF-8, without another charset.")
    return None


def _judge_form(
    route: Route, body: bytes | memoryview, content_type: bytes | None, relay: bool
) -> tuple[Judged, list[Span]] | Refusal:
    boundary = boundary_of(content_type)
    if boundary is None:
        return refusals.bad_request(_FORM_WANTED)
    watched = _FORM_FIELDS if relay else _FORM_FIELDS | route.relay_fields
    form = read_form(body, boundary, watched)
    if isinstance(form, Refusal):
        return form
    if any(form.get(name) is not None for name in route.relay_fields if not relay):
        return refusals.bad_request("A borrower does not rank its own work. Leave out the field `priority`.")
    return Judged(form.get("model"), form.get("stream") in {"true", "True", "1"}), []
