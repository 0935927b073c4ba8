from __future__ import annotations

from hashlib import sha256

import pytest

from vacancy_edge import Principal, Scope, TokenTable
from vacancy_edge.tokens import _LONGEST, _REMEMBERED


def digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def table() -> TokenTable:
    return TokenTable(
        [
            ("host/borrow", ["borrow"], digest("b")),
            ("host/read", ["read"], digest("r")),
            ("pool/relay", ["relay"], digest("g").upper()),
        ]
    )


@pytest.mark.parametrize(
    ("authorization", "x_api_key", "name"),
    [
        (b"Bearer b", None, "host/borrow"),
        (b"bearer b", None, "host/borrow"),
        (b"BEARER   b ", None, "host/borrow"),
        (None, b"b", "host/borrow"),
        (None, b" b ", "host/borrow"),
        (b"Bearer b", b"b", "host/borrow"),
        (b"Bearer r", None, "host/read"),
        (b"Bearer b", b"r", None),
        (b"Bearer nonsense", b"b", None),
        (b"Bearer b", b"nonsense", None),
        (b"Basic Yg==", b"b", None),
        (b"Bearer b, Bearer r", None, None),
        (b"Basic b", None, None),
        (b"Bearer", None, None),
        (b"Bearer ", None, None),
        (b"b", None, None),
        (b"", None, None),
        (None, b"", None),
        (b"", b"b", None),
        (b"", b"", None),
        (None, b"Bearer b", None),
        (b"Bearer B", None, None),
        (None, None, None),
    ],
)
def test_who_is_asking(authorization: bytes | None, x_api_key: bytes | None, name: str | None):
    tokens = table()
    for _ in range(2):  # the second answer comes from memory
        found = tokens.check(authorization, x_api_key)
        assert (found and found.name) == name


def test_a_header_that_was_verified_is_not_believed_in_the_other_place():
    tokens = TokenTable([("a", ["borrow"], digest("b")), ("odd", ["admin"], digest("Bearer b"))])
    assert tokens.check(b"Bearer b", None) == Principal("a", frozenset({Scope.BORROW}))
    assert tokens.check(None, b"Bearer b") == Principal("odd", frozenset({Scope.ADMIN}))
    assert tokens.check(b"Bearer b", None) == Principal("a", frozenset({Scope.BORROW}))


@pytest.mark.parametrize(
    ("scopes", "may_borrow", "relays"),
    [
        (["borrow"], True, False),
        (["relay"], True, True),
        (["read", "admin"], False, False),
        ([], False, False),
    ],
)
def test_scopes_are_independent_and_relay_borrows(scopes: list[str], may_borrow: bool, relays: bool):
    found = TokenTable([("a", scopes, digest("t"))]).check(b"Bearer t", None)
    assert found is not None
    assert (found.may_borrow, found.relays) == (may_borrow, relays)


def test_one_digest_is_one_principal_with_all_its_scopes():
    tokens = TokenTable([("a", ["borrow"], digest("t")), ("b", ["read"], digest("t"))])
    assert tokens.check(b"Bearer t", None) == Principal("a", frozenset({Scope.BORROW, Scope.READ}))
    assert len(tokens) == 1


@pytest.mark.parametrize(
    ("scopes", "hexed"), [(["borrow"], "ab"), (["borrow"], "x" * 64), (["root"], "0" * 64)]
)
def test_a_bad_entry_is_refused(scopes: list[str], hexed: str):
    with pytest.raises(ValueError, match=r"."):
        TokenTable([("a", scopes, hexed)])


def test_memory_holds_verified_headers_only_and_is_bounded():
    tokens = table()
    for count in range(3 * _REMEMBERED):
        assert tokens.check(b"Bearer x%d" % count, None) is None
        assert tokens.check(None, b"x%d" % count) is None
    assert (len(tokens._by_authorization), len(tokens._by_api_key)) == (0, 0)
    for count in range(3 * _REMEMBERED):
        assert tokens.check(b"Bearer b" + b" " * count, None) is not None
    assert len(tokens._by_authorization) <= _REMEMBERED


def test_an_endless_token_is_not_digested():
    long = "b" * (_LONGEST + 1)
    assert TokenTable([("a", ["borrow"], digest(long))]).check(None, long.encode()) is None
