"""The judge of the fuzz sees what it is there for: each of these was let through by nobody, and is blamed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from standins.fuzz_cases import Fuzzed
from standins.fuzz_judge import Reached, violations

HOST = "127.0.0.1:1"
CHAT = "/v1/chat/completions"
FORM = (
    b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n'
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nRIFF\r\n--b--\r\n'
)
UUID = "01234567-89ab-4def-8123-456789abcdef"


def reached(
    target: str = CHAT,
    body: object = None,
    *,
    method: str = "POST",
    job: tuple[str | None, str] | None = ("m", "ci"),
    **headers: str,
) -> Reached:
    raw = body if isinstance(body, bytes) else json.dumps(body or {"model": "m"}).encode()
    raw = b"" if method == "GET" else raw
    fields = {"host": HOST} | ({"content-length": str(len(raw))} if raw else {})
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    return Reached(method, target, tuple(fields.items()), raw, job)


SOCKET = reached(
    "/ws?clientId=a", method="GET", job=None, connection="Upgrade", upgrade="websocket",
    sec_websocket_version="13",
    sec_websocket_key="k",
)  # fmt: skip


@pytest.mark.parametrize(
    ("dialect", "seen"),
    [
        ("openai", reached()),
        ("openai", reached(body=b'{"model":"m","a":{"x":1,"X":2}}')),
        ("openai", reached("/v1/models", method="GET", job=None)),
        ("openai", reached("/v1/images/edits", FORM, content_type="multipart/form-data; boundary=b")),
        ("ollama", reached("/api/chat", {"model": " M:Latest"}, job=("m:latest", "ci"))),
        ("ollama", reached("/api/show", {"model": "m"}, job=None)),
        (
            "ollama",
            reached("/api/generate", {"model": "m", "prompt": "x", "keep_alive": 0}, job=("m:latest", "ci")),
        ),
        ("comfyui", reached("/prompt", {"prompt": {"1": {"inputs": {"ckpt_name": "m"}}}, "prompt_id": UUID})),
        ("comfyui", reached("/history/a?x", method="GET", job=None)),
        ("comfyui", SOCKET),
    ],
)
def test_what_may_be_forwarded(dialect: str, seen: Reached) -> None:
    assert violations(dialect, HOST, seen, None) == []


@pytest.mark.parametrize(
    ("dialect", "seen", "says"),
    [
        ("openai", reached("/slots", method="GET", job=None), "not open"),
        ("openai", reached("/v1/Models", method="GET", job=None), "not open"),
        ("openai", reached("/v1/models/", method="GET", job=None), "not open"),
        ("openai", reached("/v1/models?reload=1", method="GET", job=None), "query"),
        ("openai", reached(CHAT + "?model=x"), "query"),
        ("openai", reached(job=None), "job"),
        ("openai", reached("/v1/models", method="GET"), "job"),
        ("openai", reached(body={"model": "huge"}), "judged"),
        ("openai", reached(body={}, job=("m", "ci")), None),
        ("openai", reached(body=b'{"model":"m","model":"huge"}'), "no plain"),
        ("openai", reached(body=b'{"model":"m","MODEL":"huge"}'), "no plain"),
        ("openai", reached(body=b'{"model":"m"}{}'), "no plain"),
        ("openai", reached(body=b'{"MODEL":"m"}', job=(None, "ci")), "named in"),
        ("openai", reached(body=b'["m"]'), "no plain"),
        ("openai", reached(authorization="Bearer x"), "fields"),
        ("openai", reached(te="trailers"), "fields"),
        ("openai", reached(proxy_x="y"), "fields"),
        ("openai", reached(x_conversation_id="c"), "fields"),
        ("openai", reached(x_note="borrow-token"), "token"),
        ("openai", reached(content_encoding="gzip"), "compressed"),
        ("openai", reached(content_length="3"), "Content-Length"),
        ("openai", reached(host="proxy"), "Host"),
        ("openai", reached(content_type="text/plain"), "Content-Type"),
        ("openai", reached("/v1/responses", {"model": "m", "background": True}), "background"),
        ("openai", reached("/v1/images/edits", FORM), "Content-Type"),
        ("openai", reached("/v1/images/edits", FORM, content_type="multipart/form-data; boundary=c"), "form"),
        (
            "openai",
            reached(
                "/v1/images/edits", FORM, content_type="multipart/form-data; boundary=b", job=("x", "ci")
            ),
            "judged",
        ),
        ("ollama", reached("/api/chat", {"model": "m:cloud"}, job=("m:cloud", "ci")), "cloud"),
        ("ollama", reached("/v1/models/m%3Acloud", method="GET", job=None), "cloud"),
        (
            "ollama",
            reached("/api/chat", {"model": "m", "keep_alive": -1}, job=("m:latest", "ci")),
            "keep_alive",
        ),
        (
            "ollama",
            reached("/api/generate", {"model": "m", "keep_alive": 0}, job=("m:latest", "ci")),
            "unloads",
        ),
        ("ollama", reached("/api/chat", {"model": "m"}, job=("huge:latest", "ci")), "judged"),
        ("comfyui", reached("/prompt", {"prompt": {}, "prompt_id": UUID, "front": True}), "queue"),
        ("comfyui", reached("/prompt", {"prompt": {}}), "prompt id"),
        (
            "comfyui",
            reached("/prompt", {"prompt": {"1": {"inputs": {"ckpt_name": "huge"}}}, "prompt_id": UUID}),
            "judged",
        ),
        ("comfyui", replace(SOCKET, headers=(*SOCKET.headers, ("origin", "x"))), "fields"),
        ("comfyui", replace(SOCKET, target="/queue"), "not open"),
        ("comfyui", replace(SOCKET, headers=SOCKET.headers[:-2]), "handshake"),
    ],
)
def test_what_may_not(dialect: str, seen: Reached, says: str | None) -> None:
    found = violations(dialect, HOST, seen, None)
    assert (says is None) or any(says in one for one in found), found


def test_what_was_sent_is_what_is_forwarded() -> None:
    sent = Fuzzed(b"", "plain", body=b'{"model":"m","priority":1}')
    assert violations("openai", HOST, reached(), sent) == []
    changed = reached(body={"model": "m", "n": 2})
    assert violations("openai", HOST, changed, sent) == ["a field was changed that should pass"]
    assert violations("openai", HOST, reached(body={"model": "m", "priority": 1}), sent) == [
        "it has a priority"
    ]
    assert violations("openai", HOST, reached(x_vllm_priority="1"), replace(sent, relay=True)) == []
    assert "fields" in violations("openai", HOST, reached(x_vllm_priority="1"), sent)[0]
    assert "token" in violations("openai", HOST, reached(), replace(sent, denied=True))[0]
