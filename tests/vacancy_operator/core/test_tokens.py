from __future__ import annotations

import base64

import pytest

from standins.operator_world import EPOCH, SPARE, service_token
from vacancy_operator.core.tokens import claims, decoded, encoded, host_tokens

OLD = {"borrow": "B" * 43, "read": "R" * 43, "admin": "A" * 43}


def test_tokens_that_exist_are_kept() -> None:
    assert host_tokens({"data": encoded(OLD)}, SPARE) == OLD


def test_without_a_secret_all_are_new() -> None:
    assert host_tokens(None, SPARE) == dict(zip(("borrow", "read", "admin"), SPARE, strict=True))


@pytest.mark.parametrize(
    "value", [None, "", "c2hvcnQ=", "no base64!", base64.b64encode(b"\xff" * 40).decode(), 7]
)
def test_one_that_is_missing_or_no_secret_is_made_and_the_others_stay(value: object) -> None:
    data = {**encoded(OLD), "read": value}
    assert host_tokens({"data": data}, SPARE) == {**OLD, "read": SPARE[1]}


def test_values_go_in_and_out() -> None:
    assert decoded({"data": encoded({"k": "v"})}, "k") == "v"
    assert decoded({"data": None}, "k") is None


def test_a_token_says_whose_it_is_and_when_to_renew_it() -> None:
    found = claims(service_token("account", "secret", EPOCH, 900.0))
    assert found is not None
    assert (found.account_uid, found.secret_uid) == ("account", "secret")
    assert found.renew_at == EPOCH + 600.0


@pytest.mark.parametrize("token", [None, "", "one", "a.b.c", "e30.e30.e30", "e30.W10.x", "e30.bnVsbA.x"])
def test_what_is_no_token_says_nothing(token: str | None) -> None:
    assert claims(token) is None
