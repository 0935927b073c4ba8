"""Each kind of text has its rule; the API server itself judges them in tests/crds."""

from __future__ import annotations

from typing import Any

import pytest

from vacancy_api.lending_host import LendingHostSpec
from vacancy_api.schema_checks import _KINDS, SchemaError, checked, quoted


def kinds(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(kinds, node))
    if not isinstance(node, dict):
        return set()
    own = {node["x-vacancy-check"]["kind"]} if "x-vacancy-check" in node else set()
    return own.union(*map(kinds, node.values()))


def test_every_kind_that_a_model_uses_has_a_rule_and_no_rule_is_left_over() -> None:
    assert kinds(LendingHostSpec.model_json_schema()) == set(_KINDS)


def test_an_unknown_kind_is_an_error_with_its_place() -> None:
    with pytest.raises(SchemaError, match=r"spec\.x: there is no rule .*'colour'"):
        checked({"x-vacancy-check": {"kind": "colour"}}, "spec.x")


def test_the_bounds_of_a_duration_are_in_rule_and_message() -> None:
    rule = checked({"x-vacancy-check": {"kind": "duration", "min": "1s", "max": "24h"}}, "x")
    assert "duration(self) >= duration('1s') && duration(self) <= duration('24h')" in rule["rule"]
    assert "from 1s to 24h" in rule["message"]


def test_text_in_a_rule_is_quoted() -> None:
    assert quoted(r"it's a \d") == r"'it\'s a \\d'"
