from __future__ import annotations

import pytest

from vacancy_edge.this_machine import from_this_machine, is_loopback


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.8.8", "::1", "::1%lo"])
@pytest.mark.parametrize(
    "host", [None, "127.0.0.1:8471", "localhost:8471", "LOCALHOST", "[::1]:8471", "127.0.0.1"]
)
def test_a_program_of_this_machine(peer: str, host: str | None) -> None:
    assert from_this_machine(peer, host, None, tls=False)


@pytest.mark.parametrize("peer", [None, "", "192.0.2.1", "2001:db8::1", "localhost.example", "/run/socket"])
def test_another_machine(peer: str | None) -> None:
    assert not from_this_machine(peer, "127.0.0.1", None, tls=False)


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "",
        "http://127.0.0.1",
        "http://localhost:8471",
        "https://127.0.0.1:8471",
    ],
)
def test_a_page_of_another_site(origin: str) -> None:
    assert not from_this_machine("127.0.0.1", "127.0.0.1:8471", origin, tls=False)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8471",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "",
        "[::1",
        "a:b:c",
    ],
)
def test_a_page_whose_name_was_made_to_point_here(host: str) -> None:
    assert not from_this_machine("127.0.0.1", host, None, tls=False)
    assert not from_this_machine("127.0.0.1", host, f"http://{host}", tls=False)


@pytest.mark.parametrize("tls", [False, True])
def test_a_page_of_our_own(tls: bool) -> None:
    scheme = "https" if tls else "http"
    assert from_this_machine("127.0.0.1", "localhost:8470", f"{scheme}://localhost:8470", tls=tls)


def test_an_address_that_only_looks_like_it() -> None:
    assert not is_loopback("128.0.0.1")
    assert not is_loopback("1270.0.0.1")
