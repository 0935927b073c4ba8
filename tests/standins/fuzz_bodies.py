"""Bodies of every kind that servers read in different ways, from a seed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

MODELS = (
    "m", "small", "small:latest", "Small:LATEST", "registry.ollama.ai/library/small", "library/small:7b",
    "a/b:c",
    "host.example/ns/m:q4_0", "org/model-7B", "m:cloud", "m-cloud", "m:7b-cloud", "M:CLOUD", " m:cloud ",
    "m:Cloud\t",
    "m:local", " small", "small ", "", "\u0000", "m\n", "\u043c", "\uff4d", "mod\u00e9l", "../m", "m?x=1",
    "m#y",
    "a:b:c", ":m", "m:", "/m", "m/", "http://m", "m" * 300, "m" * 2000, "\U0001f600", "m\u200b", "\u202em",
    "sd_xl_base_1.0.safetensors", "sub/flux.safetensors", "sub\\flux.safetensors",
)  # fmt: skip
_CASED = ("MODEL", "Model", "mODEL", "model ", "\u212aodel", "mode\u017f", "models", "m\u00f6del")
_ESCAPED = ("\\u006dodel", "mod\\u0065l", "\\u004dODEL", "mode\\u006C")
_ODD = (
    "1",
    "1.5",
    "true",
    "null",
    "[]",
    '["m"]',
    "{}",
    '{"a":"m"}',
    '"\\ud800"',
    '"\\u0000"',
    "-0",
    "1e999",
    "NaN",
)
_TAILS = (
    b"{}", b"x", b",", b"\0", b"]", b"}", b' {"model":"huge"}', b'\n{"model":"huge"}', b"\x1a", b"\xff",
    b"//",
    b" ", b"\n", b"\r\n\t ",
)  # fmt: skip
_VALUES = (
    '"x"',
    "1",
    "null",
    "true",
    "[]",
    "{}",
    '{"a":{"b":[1]}}',
    "-1",
    "0",
    '"0"',
    '"-1s"',
    "1e308",
    "1e400",
)
_KEYS = (
    "stream", "priority", "background", "keep_alive", "options", "shift", "n", "max_tokens", "prompt",
    "messages",
    "input", "prompt_id", "client_id", "number", "front", "extra_data", "name", "Priority", "PRIORITY",
    "KEEP_ALIVE",
    "Prompt_Id", "user", "raw", "template",
)  # fmt: skip


def json_body(rng: Random, dialect: str) -> bytes:
    """A JSON body for a work route; about a third are what a client would send."""
    if dialect == "comfyui":
        return _mutated_json(rng, graph(rng))
    body: dict[str, Any] = {"model": rng.choice(MODELS[:12]), "messages": [{"role": "user", "content": "hi"}]}
    if rng.random() < 0.4:
        body["model"] = rng.choice(MODELS)
    if rng.random() < 0.3:
        body.pop("model")
    for _ in range(rng.randrange(3)):
        body[rng.choice(_KEYS)] = json.loads(rng.choice(_VALUES[:9]))
    if dialect == "ollama" and rng.random() < 0.5:
        body["keep_alive"] = rng.choice(
            [0, -1, 60, 1e9, "5m", "-1", "0", "100h", "1e3", "9999999999999h", None, 0.1]
        )
        body |= rng.choice([{"prompt": ""}, {"prompt": "x"}, {"messages": []}, {}])
        body["options"] = rng.choice([{}, {"num_ctx": 4096}, {"NUM_CTX": 1}, {"num_gpu": 99}, None, []])
    return _mutated_json(rng, body)


def _mutated_json(rng: Random, document: dict[str, Any]) -> bytes:
    items = [(json.dumps(k), json.dumps(v, ensure_ascii=rng.random() < 0.5)) for k, v in document.items()]
    kind = rng.randrange(14)
    model = json.dumps(rng.choice(MODELS))
    if kind == 0:
        items.insert(rng.randrange(len(items) + 1), ('"model"', model))
    elif kind == 1:
        items.insert(
            rng.randrange(len(items) + 1), (json.dumps(rng.choice(_CASED), ensure_ascii=False), model)
        )
    elif kind == 2:
        items.insert(rng.randrange(len(items) + 1), (f'"{rng.choice(_ESCAPED)}"', model))
    elif kind == 3:
        items = [(k, rng.choice(_ODD) if k == '"model"' else v) for k, v in items]
    elif kind == 4:
        items.insert(rng.randrange(len(items) + 1), (json.dumps(rng.choice(_KEYS)), rng.choice(_VALUES)))
        items.insert(rng.randrange(len(items) + 1), (json.dumps(rng.choice(_KEYS)), rng.choice(_VALUES)))
    elif kind == 5:
        items += [(f'"k{n}"', "1") for n in range(rng.choice([50, 62, 70, 200]))]
    elif kind == 6:
        depth = rng.choice([20, 500, 3000])
        items.append(('"deep"', "[" * depth + "]" * depth))
    return _spoiled(rng, kind, _written(rng, items))


def _written(rng: Random, items: list[tuple[str, str]]) -> bytes:
    gap = rng.choice(["", "", " ", "\n", "\t\r\n "])
    text = "{" + gap + ("," + gap).join(f"{k}{gap}:{gap}{v}" for k, v in items) + gap + "}"
    return text.encode("utf-8", "surrogatepass")


def _spoiled(rng: Random, kind: int, raw: bytes) -> bytes:
    if kind == 7:
        return raw + rng.choice(_TAILS)
    if kind == 8:
        return raw[: rng.randrange(len(raw))]
    if kind == 9:
        return rng.choice([
            b"", b"[]", b"1", b'"x"', b"null", b"\xef\xbb\xbf" + raw, raw.decode("latin-1").encode("utf-16"),
            b"[" + raw + b"]",
            b"model=m", b"{'model':'m'}", b"{model:1}", raw + raw, b" " + raw, b"\n\n" + raw, b"\x0b" + raw,
        ])  # fmt: skip
    if kind == 10:
        spoiled = bytearray(raw)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(spoiled))
            spoiled[at : at + rng.randrange(2)] = rng.choice(
                [b"\0", b'"', b"\\", b"\xff", b",", b":", b"}", b"\n", b"e"]
            )
        return bytes(spoiled)
    return raw


def graph(rng: Random) -> dict[str, Any]:
    """A submission to ComfyUI."""
    inputs: dict[str, Any] = {"ckpt_name": rng.choice(MODELS[-3:])}
    if rng.random() < 0.3:
        inputs = {rng.choice(["unet_name", "model_name", "image", "lora_name", "x"]): rng.choice(MODELS)}
    if rng.random() < 0.1:
        inputs["ckpt_name"] = rng.choice([["1", 0], 3, None, {"a": "b.safetensors"}, ["x.gguf"]])
    nodes: Any = {
        str(n): {"class_type": "CheckpointLoaderSimple", "inputs": inputs} for n in range(rng.randrange(1, 4))
    }
    if rng.random() < 0.1:
        nodes = rng.choice([[], "x", None, {"1": 1}, {"1": {"inputs": []}}, {"1": {}}, {}])
    body: dict[str, Any] = {"prompt": nodes}
    if rng.random() < 0.5:
        body["client_id"] = rng.choice(["a", "b", "c" * 300, 7, None, "a b", "", "\u00e9"])
    if rng.random() < 0.4:
        plain = "01234567-89ab-4def-8123-456789abcdef"
        body["prompt_id"] = rng.choice(
            [plain, plain.upper(), "x", 5, None, "", plain + " ", plain[:-1] + str(rng.randrange(10))]
        )
    for key in ("number", "front", "extra_data"):
        if rng.random() < 0.2:
            body[key] = rng.choice([1, -1, True, {"client_id": "a"}, {}, None, "x"])
    return body


def form_body(rng: Random) -> tuple[bytes, bytes]:
    """A multipart form and its Content-Type; about a third are what a client would send."""
    boundary = rng.choice([b"b", b"----WebKitFormBoundaryX", b"0123456789", b"a'()+_,-./:=?b"])
    kind = rng.randrange(16)
    model = rng.choice(MODELS).encode("utf-8", "surrogatepass")
    names = [b"model", b"file", b"stream"]
    if kind in {0, 15}:
        names.insert(rng.randrange(3), b"model" if kind == 0 else b"_charset_")
    parts = []
    for name in names:
        value = model if name == b"model" else b"true" if name == b"stream" else b"RIFF\r\n--data\0\xff"
        more = b'; filename="a.wav"\r\nContent-Type: audio/wav' if name == b"file" else b""
        head = b'Content-Disposition: form-data; name="%b"%b' % (name, more)
        if name == b"model":
            head = _odd_disposition(rng, kind, head)
        parts.append(b"--%b\r\n%b\r\n\r\n%b\r\n" % (boundary, head, value))
    body = b"".join(parts) + b"--%b--\r\n" % boundary
    hidden = b'--%b\r\nContent-Disposition: form-data; name="model"\r\n\r\nhuge\r\n' % boundary
    if kind == 8:
        body = hidden[:-2].replace(b"\r\n", b"\n") + b"\n" + body
    elif kind == 9:
        body = b"preamble\r\n" + body
    elif kind == 10:
        body += hidden + b"--%b--\r\n" % boundary
    elif kind == 11:
        body = body[: rng.randrange(len(body))]
    elif kind == 12:
        body = body.replace(b"\r\n--", rng.choice([b"\n--", b"\r--", b"\r\n --", b"\r\n-"]), 1)
    kinds = [b"multipart/form-data; boundary=%b" % boundary]
    if kind in {13, 14}:
        kinds = [
            b'multipart/form-data; boundary="%b"' % boundary, b"multipart/form-data",
            b"multipart/mixed; boundary=%b" % boundary,
            b"multipart/form-data; boundary=x; boundary=%b" % boundary, b"application/json",
            b"MULTIPART/FORM-DATA; BOUNDARY=%b" % boundary,
            b"multipart/form-data; charset=utf-16; boundary=%b" % boundary,
            b"multipart/form-data; boundary=%b; x" % boundary,
            b"multipart/form-data; boundary=", b"multipart/form-data; boundary*=us-ascii''%b" % boundary,
            b"multipart/form-data, application/json; boundary=%b" % boundary,
        ]  # fmt: skip
    return body, rng.choice(kinds)


def _odd_disposition(rng: Random, kind: int, head: bytes) -> bytes:
    if kind == 1:
        return head.replace(
            b'name="model"', rng.choice([b"name=model", b'NAME="model"', b'name = "model"', b"name='model'"])
        )
    if kind == 2:
        return head + rng.choice(
            [b'; name="x"', b"; name*=utf-8''x", b'; filename="m"', b";", b'; name="model"']
        )
    if kind == 3:
        return head.replace(
            b'"model"', rng.choice([b'"mod\\el"', b'"MODEL"', b'"model "', b'"m\\"odel"', b'"model', b'""'])
        )
    if kind == 4:
        return head + b"\r\n" + rng.choice([
            b"Content-Transfer-Encoding: base64", b"Content-Type: text/plain; charset=utf-16", b"X: y",
            b" folded",
            b'Content-Disposition: form-data; name="x"', b"Content-Transfer-Encoding: 8bit", b"bad line",
        ])  # fmt: skip
    if kind == 5:
        return head.replace(
            b"form-data", rng.choice([b"attachment", b"form-data;", b"FORM-DATA", b"form-data\t"])
        )
    return head
