"""What a body to Ollama asks for.

Invariant: the model judged is the model that Ollama loads, in every release. Ollama reads keys in any case
and believes the last of them, here and in nested objects that it has a type for; `read_object` refuses what
such a reader could take differently. `options` is a map to it, whose keys it compares as written; they are
held to one spelling all the same, since a later release may read them like the rest.

1. The body is one plain object (`jsonbody`), and its name is a string.
2. A name of the cloud is refused wherever it stands. So is `:local` at the end of a name: newer releases take
   it off, older ones take it for a tag.
3. Under /v1 there is no `keep_alive` and there are no options, whatever the body holds.
4. `keep_alive` is held within bounds.
5. Without a prompt or messages, a `keep_alive` of nothing unloads the model: management.
6. What would make Ollama load a model anew is told to the gate.
7. How much of a model goes on which card is the owner's and taken out. The failure this prevents: with
   `num_gpu` 0 a borrower's request runs on processors that nobody asked the gate for, and everybody else is
   refused the model as one that is not on the card, for as long as it stays loaded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from vacancy_dialects import BodyRule, RouteClass, RunnerAsk, canonical_model, is_cloud, names_a_source
from vacancy_edge import refusals
from vacancy_edge.bodies import JUDGED_KEYS, Edit, Judged, background, count, output, text_of
from vacancy_edge.jsonbody import cut_spans, read_object, walk
from vacancy_edge.keep_alive import NOT_SAID, read_keep_alive
from vacancy_edge.refusal import Refusal

if TYPE_CHECKING:
    import msgspec

    from vacancy_dialects import Route
    from vacancy_edge.bodies import Found
    from vacancy_edge.jsonbody import Top
    from vacancy_edge.keep_alive import KeepAlive

WATCHED: Final = JUDGED_KEYS | {"name", "prompt", "messages", "keep_alive", "options", "shift"}
SAMPLING: Final = frozenset({
    "num_keep", "seed", "num_predict", "top_k", "top_p", "min_p", "tfs_z", "typical_p", "repeat_last_n",
    "temperature", "repeat_penalty", "presence_penalty", "frequency_penalty", "mirostat", "mirostat_tau",
    "mirostat_eta", "penalize_newline", "stop",
})  # fmt: skip
"""Options of a single generation. Any other one may make Ollama load the model anew, also one of a release
that is not known here."""
OPTIONS: Final = SAMPLING | {
    "num_ctx", "num_batch", "num_gpu", "main_gpu", "use_mmap", "num_thread", "draft_num_predict",
    "low_vram", "f16_kv", "logits_all", "vocab_only", "use_mlock", "numa",
}  # fmt: skip
"""All that have a name here, the last line being of older releases."""
PLACING: Final = frozenset({"num_gpu", "main_gpu"})
"""Options that say where a model goes."""
_EXACT: Final = 2.0**53
_EMPTY_LIST: Final = re.compile(rb"\[[ \t\r\n]*+\]")
_NULL: Final = b"null"
_V1: Final = RunnerAsk(v1=True)


def judge_ollama(route: Route, body: bytes | memoryview, relay: bool) -> Found | Refusal:
    """What a JSON body on a route of Ollama's asks for."""
    del relay  # no field here is the gateway's alone
    top = read_object(body, WATCHED)  # 1
    if isinstance(top, Refusal):
        return top
    if route.background_refused and (refused := background(top)) is not None:
        return refused
    model = _named(top, "model")
    if isinstance(model, Refusal):
        return model
    if route.body is BodyRule.OLLAMA_SHOW:
        return _shown(top, model)
    if route.body is BodyRule.OLLAMA_V1:
        stream = bytes(top.get("stream", _NULL)) == b"true"
        return Judged(model, stream, None, output(top), count(top.get("n")), runner=_V1), []  # 3
    return _native(route.body, top, model, body)


def ollama_name(name: str) -> str | Refusal:
    """The canonical form of a name, or why a borrower cannot have it."""
    if is_cloud(name):  # 2
        return refusals.cloud_model(name)
    if names_a_source(name):
        return refusals.ambiguous_body(
            'What ":local" at the end of a model\'s name means differs between releases of Ollama. '
            "Leave it out."
        )
    return canonical_model("ollama", name)


def _named(top: Top, key: str) -> str | None | Refusal:
    name = text_of(top, key)
    return ollama_name(name) if isinstance(name, str) else name


def _shown(top: Top, model: str | None) -> Found | Refusal:
    """`name` is what `model` was called before; a server may know either."""
    old = _named(top, "name")
    if isinstance(old, Refusal):
        return old
    return Judged(model or old, cls=RouteClass.PASS_THROUGH), []


def _native(rule: BodyRule, top: Top, model: str | None, body: bytes | memoryview) -> Found | Refusal:
    keep = read_keep_alive(top.get("keep_alive"))  # 4
    if isinstance(keep, Refusal):
        return keep
    options = _options(top)
    if isinstance(options, Refusal):
        return options
    cls = RouteClass.MANAGEMENT if keep.at_once and _nothing_to_do(rule, top) else RouteClass.WORK  # 5
    stream = rule is not BodyRule.OLLAMA and bytes(top.get("stream", b"true")) != b"false"
    judged = Judged(
        model, stream, None, count(options.get("num_predict")), cls=cls, runner=_runner(top, options)
    )
    return judged, sorted(_bounded(top, keep, body) + _unplaced(top, options, body))


def _bounded(top: Top, keep: KeepAlive, body: bytes | memoryview) -> list[Edit]:
    if keep is NOT_SAID or keep.instead is None:
        return []
    end = (walk(top, body) or {})["keep_alive"][1]
    return [Edit(end - len(top["keep_alive"]), end, keep.instead)]


def _unplaced(top: Top, options: Top, body: bytes | memoryview) -> list[Edit]:
    if PLACING.isdisjoint(options):  # 7
        return []
    raw = top["options"]
    start = (walk(top, body) or {})["options"][1] - len(raw)
    cuts = cut_spans(walk(options, bytes(raw)) or {}, PLACING)
    return [Edit(start + first, start + end) for first, end in cuts]


def _nothing_to_do(rule: BodyRule, top: Top) -> bool:
    """Whether Ollama finds nothing to generate: it then loads or unloads."""
    if rule is BodyRule.OLLAMA_GENERATE:
        prompt = top.get("prompt")
        return prompt is None or _is(prompt, b'""') or _is(prompt, _NULL)
    if rule is BodyRule.OLLAMA_CHAT:
        messages = top.get("messages")
        return messages is None or _is(messages, _NULL) or _EMPTY_LIST.fullmatch(messages) is not None
    return False


def _options(top: Top) -> Top | Refusal:
    raw = top.get("options")
    if raw is None or _is(raw, _NULL):
        return {}
    options = read_object(bytes(raw), OPTIONS)
    if isinstance(options, Refusal):
        return Refusal(
            options.reason,
            'Send "options" as one object with each key once, spelt as in the documentation of Ollama.',
        )
    return options


def _runner(top: Top, options: Top) -> RunnerAsk:
    # 6. Null is "not set" to Ollama.
    given = {key for key, raw in options.items() if key not in SAMPLING | PLACING and not _is(raw, _NULL)}
    context = _whole(options["num_ctx"]) if "num_ctx" in given else None
    shifts = "shift" in top and not _is(top["shift"], _NULL)
    other = shifts or bool(given - {"num_ctx"}) or ("num_ctx" in given and context is None)
    return RunnerAsk(v1=False, num_ctx=context, other_options=other)


def _whole(raw: msgspec.Raw) -> int | None:
    """A number as Go makes an integer of it; None where it is none, or too large to be one."""
    try:
        value = float(bytes(raw))
    except ValueError:
        return None
    return int(value) if abs(value) < _EXACT else None


def _is(raw: msgspec.Raw, value: bytes) -> bool:
    return len(raw) == len(value) and bytes(raw) == value
