from __future__ import annotations

from hypothesis import given

from standins.anything import ANYTHING
from vacancy_api.loose import entries, mapping, number, repeated, text, texts


@given(ANYTHING)
def test_readers_take_anything(data: object) -> None:
    for key in ("", "a"):
        assert isinstance(mapping(data, key), dict)
        for _, item in entries(data, key):
            texts(item, key)
            text(item, key)
            number(item, key)


def test_a_boolean_is_no_number() -> None:
    assert number({"a": True}, "a") is None
    assert number({"a": 3}, "a") == 3


def test_only_what_came_before_is_repeated() -> None:
    assert list(repeated([(0, "a"), (1, None), (2, "a"), (3, "b"), (4, "a")])) == [(2, "a"), (4, "a")]
