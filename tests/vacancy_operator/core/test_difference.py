from __future__ import annotations

from typing import Any

import pytest

from vacancy_operator.core.difference import differs

OURS = {"kind": "LendingHost", "uid": "1"}
THEIRS = {"kind": "Other", "uid": "2"}

CASES: dict[str, tuple[Any, Any, bool]] = {
    "the same": ({"a": 1}, {"a": 1}, False),
    "more is there": ({"a": 1}, {"a": 1, "b": 2}, False),
    "missing": ({"a": 1}, {}, True),
    "nothing there": ({"a": 1}, None, True),
    "deep, more is there": ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, False),
    "deep, other value": ({"a": {"b": 1}}, {"a": {"b": 2}}, True),
    "a list is whole": ({"rules": [1]}, {"rules": [1, 2]}, True),
    "another's reference beside ours": (
        {"ownerReferences": [OURS]},
        {"ownerReferences": [THEIRS, {**OURS, "blockOwnerDeletion": False}]},
        False,
    ),
    "our reference is gone": ({"ownerReferences": [OURS]}, {"ownerReferences": [THEIRS]}, True),
    "no references at all": ({"ownerReferences": [OURS]}, {}, True),
}


@pytest.mark.parametrize("name", CASES)
def test_differs(name: str) -> None:
    desired, live, expected = CASES[name]
    assert differs(desired, live) is expected
