"""What a ComfyUI submission asks for: its prompt id, whose progress it is, which models its graph loads.

Invariant: what is read here is what the server reads. It takes the last of two equal keys at any depth, as
this does below the top level; at the top two equal keys are refused like everywhere. A client id can stand in
`extra_data` too, and counts where the top level has none.

Whether a borrower's prompt id was used before is not in the body and is not decided here. The id, theirs or a
new one, is put at the end of the body, where it can still be exchanged for another of its length
(`PromptAsk.from_end`). `number` and `front`, which jump the queue, are cut out.

Which models: option rejected are the loaders by the class of the node, since custom nodes have their own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import msgspec

from vacancy_dialects import PromptAsk
from vacancy_edge import refusals
from vacancy_edge.bodies import Edit, Found, Judged
from vacancy_edge.jsonbody import cut_spans, read_object, walk
from vacancy_edge.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vacancy_dialects import Route
    from vacancy_edge.jsonbody import Top

MAX_INPUTS: Final = 1 << 15
"""Nodes and their inputs together; a graph of a thousand nodes has some ten thousand."""
CLOSELY: Final = 64 << 10
"""Bytes of lists and objects that are looked into value by value; in more of them, every name counts."""
MAX_MODELS: Final = 64
MAX_NAME: Final = 1024
MAX_CLIENT_ID: Final = 256
MAX_DEPTH: Final = 32

_CUT: Final = frozenset({"prompt_id", "number", "front"})
_WATCHED: Final = _CUT | {"prompt", "client_id", "extra_data"}
_MAIN: Final = frozenset({"ckpt_name", "unet_name", "model_name", "model_path", "diffusion_model"})
"""Inputs of the core loaders that name what fills the card."""
_COMPANIONS: Final = (
    "vae", "lora", "clip", "text_encoder", "controlnet", "control_net", "style_model", "gligen",
    "hypernetwork", "photomaker", "audio_encoder", "embedding", "ipadapter", "ip_adapter",
)  # fmt: skip
"""In the names of inputs whose model comes with another one and is measured with it. Here and below: no
expression, since one with alternatives takes a second for the megabytes that a borrower may send."""
_FILES: Final = (".safetensors", ".sft", ".ckpt", ".gguf", ".pt", ".pt2", ".pth", ".bin", ".pkl", ".onnx")
_FILE_ENDS: Final = tuple(f'{end}"'.encode() for end in _FILES)
_SPACE: Final = b" \t\r\n"
_CANONICAL: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_STR: Final[msgspec.json.Decoder[str | None]] = msgspec.json.Decoder(str | None)
_ANY: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder()


class _Node(msgspec.Struct):
    inputs: dict[str, msgspec.Raw] = {}


_NODES: Final[msgspec.json.Decoder[dict[str, msgspec.Raw]]] = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Extra(msgspec.Struct):
    client_id: msgspec.Raw = msgspec.Raw(b"null")


_GRAPH: Final[msgspec.json.Decoder[dict[str, _Node]]] = msgspec.json.Decoder(dict[str, _Node])
_EXTRA: Final[msgspec.json.Decoder[_Extra]] = msgspec.json.Decoder(_Extra)


def judge_graph(_route: Route, body: bytes | memoryview, _relay: bool) -> Found | Refusal:
    """What a submission asks for, with the edits that give it its prompt id; or why it is refused."""
    top = read_object(body, _WATCHED)
    if isinstance(top, Refusal):
        return top
    client_id, models = _client_id(top), _models(top.get("prompt"))
    if isinstance(client_id, Refusal):
        return client_id
    if isinstance(models, Refusal):
        return models
    own = _prompt_id(top)
    prompt_id = own or str(uuid4())
    edits, after = _edits(top, body, prompt_id)
    ask = PromptAsk(prompt_id, client_id, models, own=own is not None, from_end=len(prompt_id) + 2 + after)
    return Judged(next(filter(None, models), None), prompt=ask), edits


def _edits(top: Top, body: bytes | memoryview, prompt_id: str) -> tuple[list[Edit], int]:
    """What goes and what comes, and how many bytes of white space follow the object."""
    edits: list[Edit] = []
    if not _CUT.isdisjoint(top):
        edits = [Edit(*span) for span in cut_spans(walk(top, body) or {}, _CUT)]
    end = len(body)
    while body[end - 1] in _SPACE:
        end -= 1
    brace = end - 1
    return [*edits, Edit(brace, brace, b',"prompt_id":"%b"' % prompt_id.encode())], len(body) - end


def _prompt_id(top: Top) -> str | None:
    try:
        prompt_id = _STR.decode(top["prompt_id"]) if "prompt_id" in top else None
    except msgspec.MsgspecError:
        return None
    return prompt_id if prompt_id is not None and _CANONICAL.fullmatch(prompt_id) else None


def _client_id(top: Top) -> str | None | Refusal:
    try:
        raw: msgspec.Raw | bytes | None = top.get("client_id")
        if raw is None and "extra_data" in top:
            raw = _EXTRA.decode(top["extra_data"]).client_id
        client_id = _STR.decode(b"null" if raw is None else raw)
    except (msgspec.MsgspecError, RecursionError):
        return refusals.bad_request('"client_id" must be a string, and "extra_data" an object.')
    if client_id is not None and len(client_id) > MAX_CLIENT_ID:
        return refusals.bad_request('"client_id" is too long.')
    return client_id or None


def _models(graph: msgspec.Raw | None) -> tuple[str | None, ...] | Refusal:
    if graph is None:
        return refusals.bad_request('The body has no "prompt". Send the graph in it, in the API format.')
    try:
        few = len(_NODES.decode(graph)) <= MAX_INPUTS  # so many as objects take a second by themselves
        nodes = _GRAPH.decode(graph) if few else {}
        if not few or sum(1 + len(node.inputs) for node in nodes.values()) > MAX_INPUTS:
            return refusals.bad_request(f"The graph has more than {MAX_INPUTS} nodes and inputs.")
        found = dict.fromkeys(_Names().of(nodes))
    except (msgspec.MsgspecError, RecursionError):
        return refusals.bad_request('"prompt" must be a graph in the API format: nodes by id, with inputs.')
    if len(found) > MAX_MODELS or any(len(name or "") > MAX_NAME for name in found):
        return refusals.bad_request(f"The graph names more than {MAX_MODELS} models, or one at great length.")
    return tuple(found)


class _Names:
    """The models that a graph names. What is looked into value by value is bounded: it costs most."""

    def __init__(self) -> None:
        self._closely = CLOSELY

    def of(self, nodes: dict[str, _Node]) -> Iterator[str | None]:
        """Every name, in the order of the graph; None: one that only its run will tell."""
        for node in nodes.values():
            for key, value in node.inputs.items():
                raw = bytes(value)
                if key in _MAIN:
                    # A link to another node, or what no loader of the core takes.
                    yield _STR.decode(raw) if raw.startswith(b'"') else None
                elif _likely(raw) and not _companion(key):
                    yield from self._inside(raw)

    def _inside(self, raw: bytes) -> Iterator[str | None]:
        if raw.startswith(b'"') or len(raw) <= self._closely:
            self._closely -= 0 if raw.startswith(b'"') else len(raw)
            yield from filter(_is_file, _texts(_ANY.decode(raw)))
            return
        if b"\\u" in raw:
            yield None
        for end in _file_ends(raw):
            yield raw[raw.rfind(b'"', 0, end) + 1 : end].decode()


def _companion(key: str) -> bool:
    key = key.lower()
    return any(word in key for word in _COMPANIONS)


def _likely(raw: bytes) -> bool:
    """Whether a name in it ends like a file, or could and is written with escapes."""
    if b'"' not in raw:
        return False
    lower = raw.lower()
    return b"\\u" in raw or any(end in lower for end in _FILE_ENDS)


def _file_ends(raw: bytes) -> Iterator[int]:
    """Where names end like a file; of each kind no more than matter."""
    lower = raw.lower()
    for end in _FILE_ENDS:
        at = lower.find(end)
        for _ in range(MAX_MODELS + 1):
            if at < 0:
                break
            yield at + len(end) - 1
            at = lower.find(end, at + len(end))


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth > MAX_DEPTH:
        raise RecursionError
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, depth + 1)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not _companion(key):
                yield from _texts(inner, depth + 1)


def _is_file(text: str) -> bool:
    return len(text) <= MAX_NAME and text.lower().endswith(_FILES)
