from __future__ import annotations

import pytest

from vacancy_agent.core.parse.document import json_object


class UnreadableError(Exception):
    pass


def test_an_object() -> None:
    assert json_object(b'{"a": [1]}', "/x", UnreadableError) == {"a": [1]}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "/x is no JSON"),
        (b'{"a"', "/x is no JSON"),
        (b"\xff{}", "/x is no JSON"),
        (b"[" * 100_000, "/x is no JSON"),
        (b"[]", "/x is no object"),
        (b"null", "/x is no object"),
    ],
)
def test_anything_else(body: bytes, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        json_object(body, "/x", UnreadableError)
