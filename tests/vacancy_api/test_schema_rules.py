"""The rules between fields, as data; the API server itself judges with them in tests/crds."""

from __future__ import annotations

import pytest

from vacancy_api.schema_rules import RULES, Rule

ALL = [(model, rule) for model, rules in RULES.items() for rule in rules]


@pytest.mark.parametrize(("model", "rule"), ALL, ids=lambda value: getattr(value, "field", value))
def test_every_rule_names_its_field_and_says_something_for_people(model: str, rule: Rule) -> None:
    entry = rule.as_validation()
    assert entry["fieldPath"] == f".{rule.field}"
    assert entry["reason"] == "FieldValueInvalid"
    assert "self." not in rule.says
    assert "\n" not in rule.rule
    assert len(rule.says) < 200


def test_a_message_with_names_has_a_plain_one_beside_it() -> None:
    named = [rule for _, rule in ALL if rule.names]
    assert named
    assert all(rule.as_validation()["messageExpression"] == rule.names for rule in named)
    assert "messageExpression" not in Rule("true", "is fine", "x").as_validation()
