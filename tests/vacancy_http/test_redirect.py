"""Redirects: the internal target is not told."""

from __future__ import annotations

import pytest

from vacancy_http.redirect import is_loopback_name, rewrite_location


@pytest.mark.parametrize(
    ("location", "seen"),
    [
        (b"http://10.0.0.9:8000/a?b#c", b"/a?b#c"),
        (b"HTTP://10.0.0.9:8000/a", b"/a"),
        (b"http://10.0.0.9:8000", b"/"),
        (b"http://10.0.0.9:8000?x=1", b"/?x=1"),
        (b"//10.0.0.9:8000/a", b"/a"),
        (b"http://user:pw@10.0.0.9:8000/a", b"/a"),
        (b"http://localhost:8000/a", b"/a"),
        (b"http://LOCALHOST:8000/a", b"/a"),
        (b"http://127.0.0.1:8000/a", b"/a"),
        (b"http://127.1.2.3:8000/a", b"/a"),
        (b"http://[::1]:8000/a", b"/a"),
        (b"http://10.0.0.9:8000//evil/a", b"/evil/a"),
        (b"http://10.0.0.9:8000/\\evil/a", b"/evil/a"),
        (b"http://10.0.0.9:8000//\\/evil/a", b"/evil/a"),
        # other places are other places
        (b"http://10.0.0.9/a", b"http://10.0.0.9/a"),
        (b"http://10.0.0.9:8001/a", b"http://10.0.0.9:8001/a"),
        (b"http://10.0.0.99:8000/a", b"http://10.0.0.99:8000/a"),
        (b"http://example.org:8000/a", b"http://example.org:8000/a"),
        (b"http://localhost.example.org:8000/a", b"http://localhost.example.org:8000/a"),
        (b"http://localhost:11434/a", b"http://localhost:11434/a"),
        (b"https://example.org/", b"https://example.org/"),
        # no addresses
        (b"/a", b"/a"),
        (b"a/b", b"a/b"),
        (b"?x", b"?x"),
        (b"", b""),
        (b"mailto:x@10.0.0.9:8000", b"mailto:x@10.0.0.9:8000"),
        (b"http://10.0.0.9:" + b"8" * 5000, b"http://10.0.0.9:" + b"8" * 5000),
    ],
)
def test_locations(location: bytes, seen: bytes) -> None:
    assert rewrite_location(location, "10.0.0.9", 8000, tls=False) == seen


def test_default_ports_follow_the_scheme() -> None:
    assert rewrite_location(b"http://gpu.lan/a", "gpu.lan", 80, tls=False) == b"/a"
    assert rewrite_location(b"https://gpu.lan/a", "gpu.lan", 443, tls=True) == b"/a"
    assert rewrite_location(b"//gpu.lan/a", "gpu.lan", 443, tls=True) == b"/a"
    assert rewrite_location(b"https://gpu.lan/a", "gpu.lan", 80, tls=False) == b"https://gpu.lan/a"


def test_names_compare_without_case_and_final_dot() -> None:
    assert rewrite_location(b"http://GPU.lan.:81/a", "gpu.LAN", 81, tls=False) == b"/a"
    assert rewrite_location(b"http://[FE80::1]:81/a", "fe80::1", 81, tls=False) == b"/a"


def test_loopback_names() -> None:
    assert is_loopback_name("localhost")
    assert is_loopback_name("x.localhost")
    assert not is_loopback_name("localhost.x")
    assert not is_loopback_name("")
