from __future__ import annotations

from vacancy_api.problems import ContractInvalid, FieldError, path_of, shown


def test_paths() -> None:
    assert path_of(()) == ""
    assert path_of(("spec", "upstreams", 0, "port")) == "spec.upstreams[0].port"
    assert path_of(("metadata", "labels", "a/b")) == "metadata.labels['a/b']"


def test_an_error_reads_as_one_line() -> None:
    assert str(FieldError("spec.x", "is wrong", 7)) == "spec.x: is wrong (line 7)"
    assert str(FieldError("", "is empty")) == "is empty"


def test_the_same_error_is_named_once() -> None:
    one = FieldError("a", "b")
    assert ContractInvalid([one, FieldError("a", "b"), FieldError("a", "c")]).errors == (
        one,
        FieldError("a", "c"),
    )


def test_values_are_quoted_briefly() -> None:
    assert shown("x" * 1000) == "'" + "x" * 55 + "..."
    values: list[object] = [True, None, {}, [], 3]
    assert [shown(value) for value in values] == [
        "true",
        "nothing",
        "a mapping",
        "a list",
        "3",
    ]
    assert shown(10**5000) == "a number that is too long"
