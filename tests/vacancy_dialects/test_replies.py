from __future__ import annotations

import json
from pathlib import Path

import pytest

from vacancy_dialects import ReplyRule, ReplyUnreadableError, rewrite_reply

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "llama"


def body_of(name: str) -> bytes:
    return (FIXTURES / name).read_bytes().partition(b"\r\n\r\n")[2]


def test_a_routers_list_loses_argv_and_preset_and_nothing_else():
    before = body_of("b11434_router_v1_models.http")
    assert b"/llama-server" in before
    after = rewrite_reply(ReplyRule.LLAMA_MODEL_LIST, before)
    expected = json.loads(before)
    for model in expected["data"]:
        del model["status"]["args"], model["status"]["preset"]
    assert json.loads(after) == expected
    assert b"/llama-server" not in after


@pytest.mark.parametrize(
    "body",
    [
        body_of("b11434_v1_models.http"),
        b"[]",
        b'{"data":5}',
        b'{ "data": [1, {"id": "a", "status": {"value":"loaded"}}] }',
    ],
)
def test_a_list_without_them_stays_byte_for_byte(body: bytes):
    assert rewrite_reply(ReplyRule.LLAMA_MODEL_LIST, body) == body


def test_escaped_keys_do_not_hide():
    body = b'{"data":[{"id":"a","status":{"\\u0061rgs":["-x"],"value":"loaded"}}]}'
    assert (
        rewrite_reply(ReplyRule.LLAMA_MODEL_LIST, body)
        == b'{"data":[{"id":"a","status":{"value":"loaded"}}]}'
    )


@pytest.mark.parametrize("body", [b"", b"<html>", b"[" * 100_000])
def test_what_is_not_json_is_not_passed_on(body: bytes):
    with pytest.raises(ReplyUnreadableError):
        rewrite_reply(ReplyRule.LLAMA_MODEL_LIST, body)


def test_other_replies_are_not_looked_at():
    assert rewrite_reply(ReplyRule.AS_IS, b"<html>") == b"<html>"
