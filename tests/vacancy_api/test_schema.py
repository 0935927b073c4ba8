"""A model that a custom resource cannot express is an error, never a field that is taken unchecked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, create_model

from vacancy_api.fields import Contract, TextRule, matching
from vacancy_api.schema import structural
from vacancy_api.schema_checks import SchemaError

Text = Annotated[str, Field(max_length=10)]


class Inner(Contract):
    """A block."""

    size: int = Field(default=3, gt=0, le=9, description="Size.")
    text: Text | None = Field(default=None, description="Text.")


def schema_of(annotation: Any, **field: Any) -> Any:
    """The schema of one field of this type."""
    field.setdefault("description", "Something.")
    model: type[Contract] = create_model("Outer", __base__=Contract, some_field=(annotation, Field(**field)))
    return structural(model)


def property_of(annotation: Any, **field: Any) -> Any:
    return schema_of(annotation, **field)["properties"]["someField"]


def test_definitions_are_inlined_and_titles_dropped() -> None:
    assert property_of(Inner) == {
        "type": "object",
        "description": "Something.",
        "properties": {
            "size": {
                "type": "integer",
                "description": "Size.",
                "default": 3,
                "minimum": 0,
                "exclusiveMinimum": True,
                "maximum": 9,
            },
            "text": {"type": "string", "description": "Text.", "maxLength": 10},
        },
    }


def test_a_field_that_may_be_absent_is_a_plain_one_that_is_not_required() -> None:
    schema = schema_of(Inner | None, default=None)
    assert "required" not in schema
    assert schema["properties"]["someField"]["type"] == "object"
    assert "default" not in schema["properties"]["someField"]


def test_a_field_without_default_is_required() -> None:
    assert schema_of(Text)["required"] == ["someField"]


def test_defaults_that_a_factory_makes_are_there() -> None:
    assert property_of(Inner, default_factory=Inner)["default"] == {}
    assert property_of(Inner, default_factory=lambda: Inner(size=4))["default"] == {"size": 4}
    assert property_of(list[Text], default_factory=list, max_length=2)["default"] == []


@pytest.mark.parametrize("value", [False, 0, ""])
def test_a_default_that_is_false_is_a_default(value: Any) -> None:
    annotation = Text if value == "" else type(value)
    assert property_of(annotation, default=value)["default"] == value


def test_literals_are_enums() -> None:
    assert property_of(Literal["a", "b"])["enum"] == ["a", "b"]
    assert property_of(Literal["a"])["enum"] == ["a"]


def test_a_checked_text_has_a_rule_in_words_instead_of_a_pattern() -> None:
    found = property_of(Annotated[str, matching("^a$", "an a", 1)])
    assert found == {
        "type": "string",
        "description": "Something.",
        "maxLength": 1,
        "x-kubernetes-validations": [{"rule": "self.matches('^a$')", "message": "must be an a"}],
    }


Pair = tuple[int, int]


@pytest.mark.parametrize(
    ("annotation", "field", "message"),
    [
        (str, {}, "without maxLength"),
        (list[Text], {}, "without maxItems"),
        (Text, {"description": None}, "has no description"),
        (Text | int, {}, "one type"),
        (Pair, {}, "does not know prefixItems"),
        (set[int], {"max_length": 3}, "does not know uniqueItems"),
        (dict[str, int], {}, "free mapping"),
        (int, {"multiple_of": 2}, "does not know multipleOf"),
        (Any, {}, "of type None"),
        (Annotated[str, TextRule(lambda _: None, 9, {"x-vacancy-check": {"kind": "new"}})], {}, "kind 'new'"),
        (Annotated[str, TextRule(lambda _: None, 9, {"x-vacancy-note": 1})], {}, "know x-vacancy-note"),
    ],
)
def test_what_cannot_be_expressed_is_an_error_with_its_place(
    annotation: Any, field: dict[str, Any], message: str
) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        schema_of(annotation, **field)
    assert str(caught.value).startswith("Outer.someField")


def test_a_rule_about_a_field_that_went_away_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vacancy_api.schema.FIELDS", {"Inner": {"gone": {}}})
    with pytest.raises(SchemaError, match="no field gone"):
        structural(Inner)


def test_a_rule_of_a_model_that_is_not_used_is_an_error() -> None:
    """Misspelt model names would leave rules out of the file."""
    from vacancy_api.lending_host import LendingHostSpec
    from vacancy_api.schema_rules import FIELDS, RULES
    from vacancy_api.status import LendingHostStatus

    models = {"LendingHostSpec", "LendingHostStatus"}
    for model in (LendingHostSpec, LendingHostStatus):
        models |= set(model.model_json_schema()["$defs"])
    assert (set(RULES) | set(FIELDS)) - models == set()
