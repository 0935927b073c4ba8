"""The notation: what text means, and what is refused however it is written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vacancy_api.yaml_document import MAX_BYTES, read_document


def value(text: str) -> Any:
    document = read_document(f"a: {text}\n")
    assert document.errors == []
    return document.data["a"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("22:00", "22:00"),
        ("10:20:30:40:50:55", "10:20:30:40:50:55"),
        ("2030-01-31T18:00:00Z", "2030-01-31T18:00:00Z"),
        ("2030-01-31", "2030-01-31"),
        ("on", True),
        ("No", False),
        ("y", True),
        ('"off"', "off"),
        ("010", 8),
        ("0x1F", 31),
        ("1_000", 1000),
        ("-3", -3),
        ("0", 0),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".inf", float("inf")),
        ("~", None),
        ("", None),
        ("!!str 5", "5"),
        ("30s", "30s"),
        ("10.0.0.1", "10.0.0.1"),
        ("{b: [1, x]}", {"b": [1, "x"]}),
    ],
)
def test_scalars_mean_what_they_mean_to_kubectl(text: str, expected: object) -> None:
    assert value(text) == expected
    assert type(value(text)) is type(expected)


def test_places_and_spellings_are_kept() -> None:
    document = read_document("a:\n  - b: off\n  - c\n")
    assert document.lines == {(): 1, ("a",): 1, ("a", 0): 2, ("a", 0, "b"): 2, ("a", 1): 3}
    assert document.spelled == {("a", 0, "b"): "off"}
    assert document.line_of(("a", 0, "nowhere")) == 2


@pytest.mark.parametrize(
    ("source", "piece"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("# nothing\n", "is empty"),
        ("---\n---\n", "is empty"),
        (b"\xff\xfea\x00", "is not UTF-8 (line 1, byte 0)"),
        (b"a: 1\nb: \xe4\n", "is not UTF-8 (line 2, byte 8)"),
        ("a: 1\n---\nb: 2\n", "holds 2 documents"),
        ("a: [1\nb: 2\n", "is not valid YAML"),
        ("a:\n\t- 1\n", "not tabs"),
        ("a: 1\na: 2\n", "a: is there twice (first in line 1): remove one (line 2)"),
        ("a: {b: 1, b: 1}\n", "a.b: is there twice"),
        ("1: x\n", 'write "1"'),
        ("? [a]\n: x\n", "a key that is not text"),
        ("on: x\n", 'write "on"'),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "merge key"),
        ("a: &x [*x]\n", "holds itself"),
        ("a: *x\n", "undefined alias"),
        ("a: !!python/object:os.system x\n", "has the tag"),
        ("a: !!set {x}\n", "has the tag"),
        ("a: !!binary aGk=\n", "has the tag"),
        ("a: !!int x\n", "cannot be read as int"),
        ("a: !!bool maybe\n", "cannot be read as bool"),
        (f"a: {'9' * 5000}\n", "cannot be read as int"),
        ('a: "\\ud800"\n', "surrogate"),
        ('"\\ud800": 1\n', "surrogate"),
        ('a: "\\UFFFFFFFF"\n', "is not valid YAML"),
        ("a: \x01\n", "control character"),
        ("a: " + "[" * 60 + "]" * 60, "nested deeper"),
        ("[" * 20_000, "nested deeper"),
        ("x" * (MAX_BYTES + 1), "larger than 256 KiB"),
        ("%YAML 9.9\n---\na: 1\n", "is not valid YAML"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_refused(source: str | bytes, piece: str) -> None:
    assert piece in " | ".join(map(str, read_document(source).errors))


def test_repeated_aliases_do_not_multiply() -> None:
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
    )
    assert "more than 50000 values" in str(read_document(bomb).errors[0])


def test_an_alias_that_is_used_twice_is_no_loop() -> None:
    assert read_document("a: &x {b: 1}\nc: *x\nd: *x\n").errors == []


def test_a_byte_order_mark_is_no_text() -> None:
    assert read_document(b"\xef\xbb\xbfa: 1\n").data == {"a": 1}


def test_a_file_may_begin_and_end_with_a_marker() -> None:
    assert read_document("---\na: 1\n...\n---\n").data == {"a": 1}


def test_every_error_of_the_notation_is_named() -> None:
    assert len(read_document("a: 1\na: 2\n1: x\nc: !t x\n").errors) == 3


@given(st.text(st.characters(codec="utf-8") | st.sampled_from("[]{}:,&*!|>'\"%@`#-?\n\t "), max_size=80))
def test_no_text_raises(text: str) -> None:
    read_document(text)


@given(st.binary(max_size=60))
def test_no_bytes_raise(content: bytes) -> None:
    read_document(content)
