from __future__ import annotations

import json
from pathlib import Path

import pytest

from vacancy_agent.core.parse.ollama import OllamaAnswerError, parse_ps, parse_show, parse_time

RECORDED = Path(__file__).resolve().parents[3] / "fixtures" / "ollama"
ROW = {
    "name": "m:latest",
    "digest": "ab",
    "expires_at": "2026-11-30T06:05:04Z",
    "size": 2,
    "size_vram": 1,
    "context_length": 4096,
}


def body(name: str) -> bytes:
    return (RECORDED / f"{name}.http").read_bytes().split(b"\r\n\r\n", 1)[1]


def test_the_recorded_list_of_a_real_server():
    small, tiny = parse_ps(body("ps_loaded"))
    assert (small.name, small.context_length, small.size, small.size_vram) == (
        "small:latest",
        4096,
        176801792,
        0,
    )
    assert small.digest.startswith("df26617c")
    assert small.expires_at == pytest.approx(1796018704.017097619, abs=1e-6)
    assert tiny.name == "tiny:latest"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:10Z", 10),
        ("1970-01-01t00:00:10z", 10),
        ("1970-01-01T00:00:10.5Z", 10.5),
        ("1970-01-01T00:00:10.123456789Z", 10.123456789),
        ("1970-01-01T02:00:10.25+02:00", 10.25),
        ("1969-12-31T19:30:10-04:30", 10),
        ("1972-02-29T00:00:00Z", 68169600),
        ("2318-09-12T10:00:00.5Z", 11003767200.5),
    ],
)
def test_times(text: str, seconds: float):
    assert parse_time(text) == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        None,
        10,
        "",
        "now",
        "1970-01-01T00:00:10",
        "1970-13-01T00:00:10Z",
        "1971-02-29T00:00:00Z",
        "1970-01-01 00:00:10Z",
        "1970-01-01T00:00:10.Z",
        "1970-01-01T00:00:10Z ",
        "١٩٧٠-01-01T00:00:10Z",
    ],
)
def test_what_is_no_time_is_none_and_not_now(text: object):
    assert parse_time(text) is None
    (row,) = parse_ps(json.dumps({"models": [{**ROW, "expires_at": text}]}).encode())
    assert row.expires_at is None


@pytest.mark.parametrize("empty", [b'{"models":[]}', b'{"models":null}'])
def test_nothing_loaded(empty: bytes):
    assert parse_ps(empty) == ()


def test_older_servers_tell_no_context():
    row = {name: value for name, value in ROW.items() if name != "context_length"}
    assert parse_ps(json.dumps({"models": [row]}).encode())[0].context_length is None


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"{}",
        b'{"error":"x"}',
        b"[]",
        b'{"models":{}}',
        b"[" * 100_000,
        *(
            json.dumps({"models": [ROW, row]}).encode()
            for row in (
                "m",
                {},
                {**ROW, "name": ""},
                {**ROW, "digest": None},
                {**ROW, "size": "2"},
                {**ROW, "size": True},
                {**ROW, "size_vram": -1},
                {**ROW, "size_vram": None},
                {**ROW, "context_length": 4096.5},
            )
        ),
    ],
)
def test_a_list_is_read_whole_or_not_at_all(wrong: bytes):
    with pytest.raises(OllamaAnswerError):
        parse_ps(wrong)


def shown(parameters: object) -> bytes:
    return json.dumps({"parameters": parameters}).encode()


@pytest.mark.parametrize(
    ("parameters", "num_ctx"),
    [
        ("", None),
        ('stop                           "<|eot_id|>"\ntemperature                    0.7', None),
        ("num_ctx                        8192", 8192),
        ('temperature 0.7\nnum_ctx                        1.048576e+06\nstop "num_ctx 4"', 1048576),
        ("num_ctx_x 5", None),
    ],
)
def test_the_context_of_a_modelfile(parameters: str, num_ctx: int | None):
    assert parse_show(shown(parameters)).num_ctx == num_ctx


def test_a_model_without_parameters_sets_none():
    assert parse_show(b'{"modelfile": "FROM x"}').num_ctx is None


@pytest.mark.parametrize(
    "wrong",
    [shown(value) for value in (1, "num_ctx 0", "num_ctx -1", "num_ctx nan", "num_ctx 1e99", "num_ctx 0.5")]
    + [shown("num_ctx x"), shown("num_ctx 1\nnum_ctx 2"), b"nothing"],
)
def test_a_context_that_cannot_be_read_is_an_error(wrong: bytes):
    with pytest.raises(OllamaAnswerError):
        parse_show(wrong)
