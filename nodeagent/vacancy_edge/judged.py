"""What a borrower's request asks for, read from exactly the bytes that are forwarded.

Invariant: the body forwarded is the body judged (`bodies`). Which rules a JSON body is read by stands in its
row of the route table; `_READERS` is the one place where a dialect's own rules are tied to it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from vacancy_dialects import BodyRule, BodyShape, QueryRule, RouteClass, RunnerAsk, is_cloud
from vacancy_edge import refusals
from vacancy_edge.bodies import (
    JUDGED_KEYS,
    MAX_MODEL_NAME,
    NOTHING,
    Edit,
    Judged,
    background,
    count,
    decode_text,
    edited,
    output,
    text_of,
)
from vacancy_edge.comfy import judge_graph
from vacancy_edge.jsonbody import cut_spans, decode_top, plain_lists, read_object, walk
from vacancy_edge.multipart import boundary_of, read_form
from vacancy_edge.ollama_body import judge_ollama, ollama_name
from vacancy_edge.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vacancy_dialects import Match, Route
    from vacancy_edge.bodies import Found

CARELESS: Final = frozenset({b"application/x-www-form-urlencoded", b"text/plain"})
"""What `curl -d` and a browser's `fetch` call a text when nobody tells them more."""
_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9a-z-]++"
_JSON_TYPE: Final = re.compile(
    rb"(?:text/json|application/(?:[!#$%&'*.^_`|~0-9a-z+-]+\+)?json)"
    rb"((?:[ \t]*+;[ \t]*+(?:" + _TOKEN + rb"=(?:" + _TOKEN + rb"""|"[^"\\]*+"))?+)*+)"""
)
_CHARSET: Final = re.compile(rb"""; *+charset=("?)(?:utf-?8|us-ascii)\1(?= *(?:;|\Z))""")
_TEXTS: Final = frozenset({BodyShape.JSON, BodyShape.GRAPH})
_FORM_FIELDS: Final = frozenset({"model", "stream"})
_FORM_WANTED: Final = "Send this route a body of type multipart/form-data with one plain boundary."


def retyped(match: Match, content_type: bytes | None) -> bool:
    """Whether the request must go on as `application/json`, whatever its Content-Type says.

    A server that believed in a form would read other fields than were judged.
    """
    route = match.route
    is_json = route is not None and route.shape in _TEXTS and is_judged(match)
    return is_json and content_type is not None and _kind(content_type) in CARELESS


def _kind(content_type: bytes) -> bytes:
    return content_type.partition(b";")[0].strip().lower()


def is_judged(match: Match) -> bool:
    """Whether a request of this kind is read before it is forwarded: work, and reads that name a model."""
    route = match.route
    return route is not None and (
        match.cls is RouteClass.WORK or (route.judged_read and match.cls is RouteClass.PASS_THROUGH)
    )


def judge_head(
    match: Match, content_type: bytes | None, content_encoding: bytes | None, query: bytes | None
) -> Refusal | None:
    """What is wrong with a request before its body is read; None when nothing is.

    Of requests that are not judged, only the model in their path is looked at.
    """
    route = match.route
    if route is None:
        return None
    if not is_judged(match):
        return _model_in_path(match.params) if route.model_in_path else None
    return _head_of_judged(route, content_type, content_encoding, query)


def _head_of_judged(
    route: Route, content_type: bytes | None, content_encoding: bytes | None, query: bytes | None
) -> Refusal | None:
    if route.outlives:
        return refusals.outlives_reply()
    if content_encoding and content_encoding.strip().lower() != b"identity":
        return refusals.content_encoding(content_encoding)
    if query and route.query is QueryRule.REFUSE:
        return refusals.bad_request(
            "This route takes no query string, since it could choose the model. Use the form fields."
        )
    if route.shape in _TEXTS:
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
        match: what the table says about the request; what is not judged passes as it came.
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
    if (
        not counts
        and match.cls is RouteClass.WORK
        and route is not None
        and route.body is BodyRule.PLAIN
        and route.shape is BodyShape.JSON
    ):
        top = read_object(body, JUDGED_KEYS, route.relay_fields)
        if isinstance(top, Refusal):
            return top
        if (relay or route.relay_fields.isdisjoint(top)) and "background" not in top:
            model = text_of(top, "model")
            stream = "stream" in top and bytes(top["stream"]) == b"true"
            return model if isinstance(model, Refusal) else Judged(model, stream)
    found = judge_edits(match, body, content_type, relay)
    if isinstance(found, Refusal):
        return found
    asks, edits = found
    return msgspec.structs.replace(asks, forward=edited(body, edits)) if edits else asks


def plain_model(body: bytes, barred: frozenset[str]) -> str | None:
    """The model that a plain JSON body names, where one look tells.

    None: `judge_plain` has to say. So it is where no model is named, where a top-level key is in `barred`,
    and wherever the keys are not a list that is remembered as plain. What passes here, `read_object` passes
    by the same steps.
    """
    try:
        top = decode_top(body)  # 1
        known = plain_lists.get(tuple(top))  # 3, 5
        if known is None or not body.isascii() or not barred.isdisjoint(top):  # 2
            return None
        values = tuple(top.values())
        around, spaced = known
        if sum(map(len, values)) + around != len(body) and spaced % values != body:  # 4
            return None
        model = decode_text(top["model"])
    except (KeyError, RecursionError, msgspec.MsgspecError):
        return None
    return model if len(model) <= MAX_MODEL_NAME else None


def judge_edits(
    match: Match, body: bytes | memoryview, content_type: bytes | None, relay: bool
) -> Found | Refusal:
    """Like `judge_plain`, but names the edits instead of making them."""
    route = match.route
    if route is None or route.shape is BodyShape.NONE or not is_judged(match):
        return NOTHING, []
    if route.shape is BodyShape.GRAPH:
        return judge_graph(route, body, relay)
    if route.shape is BodyShape.JSON:
        return _READERS[route.body](route, body, relay)
    return _judge_form(route, body, content_type, relay)


def _judge_json(route: Route, body: bytes | memoryview, relay: bool) -> Found | Refusal:
    top = read_object(body, JUDGED_KEYS, route.relay_fields)
    if isinstance(top, Refusal):
        return top
    if route.background_refused and (refused := background(top)) is not None:
        return refused
    model = text_of(top, "model")
    if isinstance(model, Refusal):
        return model
    edits: list[Edit] = []
    if not relay and not route.relay_fields.isdisjoint(top):
        edits = [Edit(*span) for span in cut_spans(walk(top, body) or {}, route.relay_fields)]
    stream = "stream" in top and bytes(top["stream"]) == b"true"
    return Judged(model, stream, None, output(top), count(top.get("n"))), edits


_READERS: Final[Mapping[BodyRule, Callable[[Route, bytes | memoryview, bool], Found | Refusal]]] = {
    BodyRule.PLAIN: _judge_json,
    BodyRule.OLLAMA: judge_ollama,
    BodyRule.OLLAMA_GENERATE: judge_ollama,
    BodyRule.OLLAMA_CHAT: judge_ollama,
    BodyRule.OLLAMA_V1: judge_ollama,
    BodyRule.OLLAMA_SHOW: judge_ollama,
}


def _model_in_path(params: tuple[bytes, ...]) -> Refusal | None:
    for param in params:
        name = param.decode("utf-8", "replace")
        if is_cloud(name):
            return refusals.cloud_model(name)
    return None


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
) -> Found | Refusal:
    boundary = boundary_of(content_type)
    if boundary is None:
        return refusals.bad_request(_FORM_WANTED)
    watched = _FORM_FIELDS if relay else _FORM_FIELDS | route.relay_fields
    form = read_form(body, boundary, watched)
    if isinstance(form, Refusal):
        return form
    if any(form.get(name) is not None for name in route.relay_fields if not relay):
        return refusals.bad_request("A borrower does not rank its own work. Leave out the field `priority`.")
    named = form.get("model")
    model: str | Refusal | None = named
    if named is not None and route.body is BodyRule.OLLAMA_V1:
        model = ollama_name(named)
    if isinstance(model, Refusal):
        return model
    runner = RunnerAsk(v1=True) if route.body is BodyRule.OLLAMA_V1 else None
    return Judged(model, form.get("stream") in {"true", "True", "1"}, runner=runner), []
