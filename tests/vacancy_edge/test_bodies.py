from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vacancy_edge import Refusal
from vacancy_edge.bodies import MAX_MODEL_NAME, Edit, background, count, edited, output, text_of


def top(**values: bytes) -> dict[str, msgspec.Raw]:
    return {key: msgspec.Raw(value) for key, value in values.items()}


def test_an_edit_cuts_or_replaces():
    assert edited(b"abc", []) == b"abc"
    assert edited(memoryview(b"abcdef"), [Edit(0, 1), Edit(2, 4)]) == b"bef"
    assert edited(b"abcdef", [Edit(1, 2, b"XYZ"), Edit(6, 6, b"!")]) == b"aXYZcdef!"


@given(st.binary(max_size=20), st.lists(st.tuples(st.integers(0, 20), st.binary(max_size=3)), max_size=4))
def test_growth_is_what_the_body_gains(body: bytes, at: list[tuple[int, bytes]]):
    places = sorted({min(place, len(body)): new for place, new in at}.items())
    edits = [Edit(place, place, new) for place, new in places]
    assert len(edited(body, edits)) == len(body) + sum(edit.growth for edit in edits)


@pytest.mark.parametrize(
    ("raw", "text"), [(b'"a"', "a"), (b'"\\u00e9"', "é"), (b"null", None), (b'""', ""), (b'" a"', " a")]
)
def test_a_name_is_a_string_or_not_there(raw: bytes, text: str | None):
    assert text_of(top(model=raw), "model") == text
    assert text_of(top(model=raw), "name") is None


@pytest.mark.parametrize("raw", [b"5", b'["a"]', b"true", b'"' + b"m" * (MAX_MODEL_NAME + 1) + b'"'])
def test_another_name_is_refused_by_its_key(raw: bytes):
    refused = text_of(top(name=raw), "name")
    assert isinstance(refused, Refusal)
    assert '"name"' in refused.message


def test_background_is_false_or_refused():
    assert background(top()) is None
    assert background(top(background=b"false")) is None
    assert background(top(background=b"true")) is not None
    assert background(top(background=b"1")) is not None


def test_counts_are_whole_and_not_negative():
    assert output(top(max_tokens=b"5", n_predict=b"6")) == 5
    assert output(top(n_predict=b"6")) == 6
    assert output(top(x=b"6")) is None
    assert [count(raw) for raw in (None, *map(msgspec.Raw, (b"-1", b'"1"', b"1.5")))] == [None] * 4
