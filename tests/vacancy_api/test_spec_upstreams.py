from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vacancy_api.spec_upstreams import TargetUrl, UpstreamSpec, parse_target, target_problem

PLAIN = {"name": "a", "target": "http://h:1", "port": 1, "resource": "r"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://127.0.0.1:11434", TargetUrl("http", "127.0.0.1", 11434)),
        ("http://localhost", TargetUrl("http", "localhost", 80)),
        ("https://Gpu.Home.Example", TargetUrl("https", "gpu.home.example", 443)),
        ("http://[::1]:8080", TargetUrl("http", "::1", 8080)),
    ],
)
def test_targets(text: str, expected: TargetUrl) -> None:
    assert parse_target(text) == expected


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("127.0.0.1:11434", "must start with http://"),
        ("ftp://h", "must start with http://"),
        ("HTTP://h", "must start with http://"),
        ("http://h:1/", "write http://h:1"),
        ("http://h:1/v1?x=1", "write http://h:1"),
        ("http://h#f", "write http://h"),
        ("http://me:secret@h", "credentials"),
        ("http://", "HOST[:PORT]"),
        ("http://h:0", "port from 1"),
        ("http://h:65536", "port from 1"),
        ("http://h:x", "HOST[:PORT]"),
        ("http://256.1.1.1", "valid IP"),
        ("http://[::g]", "HOST[:PORT]"),
        ("http://[1:2]", "valid IP"),
        ("http://h ", "HOST[:PORT]"),
        ("http://h\n", "HOST[:PORT]"),
        ("http://-h", "HOST[:PORT]"),
    ],
)
def test_what_is_no_target(text: str, piece: str) -> None:
    assert piece in (target_problem(text) or "")
    assert parse_target(text) is None


def test_a_refused_target_does_not_repeat_its_password() -> None:
    assert "secret" not in (target_problem("http://me:secret@h") or "")


@given(st.text(max_size=40).map(lambda rest: f"http://{rest}"))
def test_what_is_accepted_has_a_host_and_a_port(text: str) -> None:
    url = parse_target(text)
    if url is not None:
        assert url.host
        assert 1 <= url.port <= 65_535


@pytest.mark.parametrize(
    ("dialect", "written", "expected"),
    [("ollama", None, True), ("comfyui", None, True), ("llamacpp", None, False), ("ollama", False, False)],
)
def test_yielding_follows_the_dialect(dialect: str, written: bool | None, expected: bool) -> None:
    item = UpstreamSpec.model_validate({**PLAIN, "dialect": dialect, "yieldOnVeto": written})
    assert item.yields is expected
