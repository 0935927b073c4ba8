"""What one row of a route table says, and what matching a request against it answers.

Invariant: a row is data. Everything the border does differently for one route than for another (is a query
allowed, which headers go, which body field goes, how a stream ends) stands in its row, so that a table can be
read beside the server's own list of routes. The option rejected is a class per dialect with overridable
methods: what such a class does to one path is spread over methods, and a route that nobody thought of
inherits behaviour.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, StrEnum

WEBSOCKET = "WS"
"""The method under which a WebSocket handshake is classified.

A handshake is a GET, but a row that allows reading a path must not allow a tunnel there, nor the other way
round.
"""

NEVER_FORWARDED = frozenset({b"x-vacancy-borrower"})
"""Headers that are between the gateway and the agent; no upstream sees them."""

READ_PLAIN = frozenset({b"accept-encoding"})
"""Not forwarded where the reply is read here: a compressed stream would hide its end."""

READ_WHOLE = frozenset({b"range", b"if-range"})
"""Not forwarded where the reply is rewritten: a part of it would pass as it is."""


class RouteClass(StrEnum):
    """What a borrower gets on a route."""

    WORK = "work"
    """Gate, ledger, forward."""
    PASS_THROUGH = "pass-through"  # noqa: S105 - a route class, not a password
    """Forwarded whatever the gate says: discovery, health, a borrower's own results."""
    MANAGEMENT = "management"
    """403 unless the owner wrote `management: allow`."""
    UNLISTED_READ = "unlisted-read"
    """A GET or HEAD that no row names: treated like management."""
    UNRECOGNISED = "unrecognised"
    """Anything else that no row names: 501 always, since it could be work."""


class BodyShape(StrEnum):
    """How the body of a work route says which model it wants."""

    JSON = "json"
    MULTIPART = "multipart"
    GRAPH = "graph"
    """JSON: ComfyUI's graph of nodes, some of which load a model."""
    NONE = "none"


class BodyRule(StrEnum):
    """By which rules the fields of a JSON body are read."""

    PLAIN = "plain"
    """A model, a few counts, and what only the gateway may say."""
    OLLAMA = "ollama"
    """Ollama's own: canonical names, `keep_alive` within bounds, what its runner is asked for."""
    OLLAMA_GENERATE = "ollama-generate"
    """As OLLAMA; without a prompt it loads, or with `keep_alive` 0 unloads, which is management."""
    OLLAMA_CHAT = "ollama-chat"
    """The same without messages."""
    OLLAMA_V1 = "ollama-v1"
    """Names as OLLAMA; no field for options or `keep_alive`."""
    OLLAMA_SHOW = "ollama-show"
    """A read that names its model in `model` or `name`."""


class QueryRule(StrEnum):
    """What happens to the query string of a matched route."""

    KEEP = "keep"
    DROP = "drop"
    """Forwarded without it: the route needs none, some clients add one (`?beta=true`)."""
    REFUSE = "refuse"
    """400: some server lets a query choose the model, which the judged body would not show."""
    MANAGEMENT = "management"
    """The route is management as soon as there is one: it makes a harmless read show or do more."""


class EndMark(Enum):
    """Which event ends a successful event stream of a route."""

    UNKNOWN = "unknown"
    """No marker is known, so a stream on this route never proves by itself that the work ended."""
    CHAT = "chat"
    """`data: [DONE]`, or a choice whose `finish_reason` is a string (OpenAI chat and text completions)."""
    MESSAGES = "messages"
    """An event of type `message_stop` (Anthropic messages)."""
    RESPONSES = "responses"
    """An event of type `response.completed`, `.failed` or `.incomplete` (OpenAI Responses)."""
    NATIVE = "native"
    """An object with `"stop": true` (llama.cpp's own /completion and /infill)."""
    TRANSCRIPT = "transcript"
    """`transcript.text.done` (OpenAI), or what ends CHAT (vLLM)."""
    SPEECH = "speech"
    """`speech.audio.done` (OpenAI)."""
    DONE = "done"
    """A line that is an object with `"done": true` (Ollama's own streams, which are lines and no events)."""
    IMAGE = "image"
    """`image_generation.completed` or `image_edit.completed` (OpenAI)."""


class ReplyRule(StrEnum):
    """What is done to the reply before the borrower sees it; replies otherwise pass byte for byte."""

    AS_IS = "as-is"
    LLAMA_MODEL_LIST = "llama-model-list"
    """In router mode the list shows each model's argv and preset: both are taken out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One row of a dialect's table.

    `path` is a template: a segment `{name}` stands for exactly one non-empty segment. `strip_headers` go from
    every request, `relay_headers` and the top-level JSON keys `relay_fields` from every request that does not
    come with the gateway's `relay` token. `own_ids` marks a route that is pass-through for ids which this
    proxy handed to the same borrower and has the class of the row for any other id; the caller looks the id
    up in `Match.params`. `issues_ids` marks work whose reply hands out such an id. `judged_read` marks a
    pass-through route whose body names a model: it is judged like work before it is forwarded, and is no
    work. `tracked` marks work that begins with its reply: the job goes on until the server shows that it
    ended. `outlives` marks work that would go on after its reply and that nobody could follow: it is refused.
    `client_query` is the query parameter that says whose messages a tunnel gets.
    """

    methods: tuple[str, ...]
    path: str
    cls: RouteClass
    shape: BodyShape = BodyShape.NONE
    body: BodyRule = BodyRule.PLAIN
    query: QueryRule = QueryRule.KEEP
    end: EndMark = EndMark.UNKNOWN
    reply: ReplyRule = ReplyRule.AS_IS
    background_refused: bool = False
    own_ids: bool = False
    issues_ids: bool = False
    judged_read: bool = False
    model_in_path: bool = False
    tracked: bool = False
    outlives: bool = False
    client_query: str | None = None
    strip_headers: frozenset[bytes] = frozenset()
    relay_headers: frozenset[bytes] = frozenset()
    relay_fields: frozenset[str] = frozenset()
    _drop_relay: frozenset[bytes] = field(init=False, repr=False, compare=False)
    _drop_borrower: frozenset[bytes] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        always = self.strip_headers | NEVER_FORWARDED
        if self.reply is not ReplyRule.AS_IS:
            always |= READ_WHOLE | READ_PLAIN
        elif self.end is not EndMark.UNKNOWN:
            always |= READ_PLAIN
        object.__setattr__(self, "_drop_relay", always)
        object.__setattr__(self, "_drop_borrower", always | self.relay_headers)

    def drop_headers(self, *, relay: bool) -> frozenset[bytes]:
        """Lower-cased request headers that must not reach the upstream (hop-by-hop ones are not in here)."""
        return self._drop_relay if relay else self._drop_borrower


@dataclass(frozen=True, slots=True)
class Match:
    """What a table says about one request.

    `path` is the path to forward: dot segments are resolved in it, nothing else is changed. `params` holds
    the percent-decoded segments of a template. `why` is for people.
    """

    cls: RouteClass
    route: Route | None
    path: bytes
    why: str
    keep_query: bool = True
    params: tuple[bytes, ...] = ()

    def target(self, query: bytes | None) -> bytes:
        """The request target to forward: `path`, and the query only where the row keeps it."""
        if query and self.keep_query:
            return self.path + b"?" + query
        return self.path
