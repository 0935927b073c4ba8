"""Contract models as the structural schemas of a custom resource.

Invariant: nothing of a model is lost without notice. A keyword that this converter does not know, a field
without a description, a text without a length, a check without a rule: each is an error when the file is
generated, never a field that the API server then takes unchecked. Rejected: a list of keywords to drop, which
would drop the bound that somebody adds next year.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from vacancy_api.schema_checks import SchemaError, checked
from vacancy_api.schema_rules import FIELDS, RULES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import core_schema

Schema = dict[str, Any]

_KEPT = ("description", "type", "enum", "minLength", "maxLength", "pattern", "minItems", "maxItems")
_READ = {"title", "default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "x-vacancy-check"}
_STRUCTURE = {"properties", "required", "additionalProperties", "items", "const"}
_KNOWN = {*_KEPT, *_READ, *_STRUCTURE}


class _Generator(GenerateJsonSchema):
    """Pydantic's generator, which leaves out the defaults that a factory makes."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        """A block whose every field has its default becomes `{}`: the API server fills in the rest."""
        factory = schema.get("default_factory")
        if factory is None or schema.get("default_factory_takes_data"):
            return super().default_schema(schema)
        value = factory()  # type: ignore[call-arg]  # the other kind of factory is excluded above
        if isinstance(value, BaseModel):
            value = value.model_dump(by_alias=True, exclude_defaults=True)
        return {**self.generate_inner(schema["schema"]), "default": value}


def structural(model: type[BaseModel]) -> Schema:
    """The schema of `model` in the form that a CustomResourceDefinition takes.

    Raises:
        SchemaError: The model says something that a custom resource cannot, with the place.
    """
    raw = model.model_json_schema(by_alias=True, schema_generator=_Generator)
    definitions = raw.pop("$defs", {})
    return _Converter(definitions).model(model.__name__, raw, model.__name__)


class _Converter:
    """One conversion; `where` is the place for messages."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions

    def model(self, name: str, raw: Schema, where: str) -> Schema:
        """An object with the rules of its model."""
        converted = self.node(raw, where)
        for field, extra in FIELDS.get(name, {}).items():
            if field not in converted["properties"]:
                raise SchemaError(f"{where}: {name} has no field {field}, which a rule is about")
            converted["properties"][field] |= extra
        rules = [rule.as_validation() for rule in RULES.get(name, ())]
        return {**converted, **({"x-kubernetes-validations": rules} if rules else {})}

    def node(self, raw: Schema, where: str) -> Schema:
        """Any schema."""
        flat = _optional(raw, where)
        if "$ref" in flat:
            name = flat.pop("$ref").rpartition("/")[2]
            return self.model(name, {**self._definitions[name], **flat}, where)
        unknown = sorted(set(flat) - _KNOWN)
        if unknown:
            raise SchemaError(f"{where}: the converter does not know {', '.join(unknown)}")
        converted = {key: flat[key] for key in _KEPT if key in flat}
        converted |= {"enum": [flat["const"]]} if "const" in flat else {}
        converted |= {"default": flat["default"]} if flat.get("default") is not None else {}
        return converted | self._by_type(flat, converted, where)

    def _by_type(self, flat: Schema, converted: Schema, where: str) -> Schema:
        match flat.get("type"):
            case "object":
                return self._object(flat, where)
            case "array":
                return self._array(flat, where)
            case "string":
                return _string(flat, converted, where)
            case "integer" | "number":
                return _bounds(flat)
            case "boolean":
                return {}
            case other:
                raise SchemaError(f"{where}: no field can be of type {other}")

    def _object(self, flat: Schema, where: str) -> Schema:
        if flat.get("additionalProperties", False) is not False or "properties" not in flat:
            raise SchemaError(f"{where}: a free mapping cannot be checked: name its fields")
        properties = {}
        for name, raw in flat["properties"].items():
            properties[name] = self.node(raw, f"{where}.{name}")
            if not properties[name].get("description"):
                raise SchemaError(f"{where}.{name}: has no description")
        return {
            "properties": properties,
            **({"required": flat["required"]} if flat.get("required") else {}),
        }

    def _array(self, flat: Schema, where: str) -> Schema:
        if "maxItems" not in flat:
            raise SchemaError(f"{where}: a list without maxItems has rules without bounded cost")
        return {"items": self.node(flat["items"], f"{where}[]")}


def _optional(raw: Schema, where: str) -> Schema:
    """`T | None` as a plain T; a field that may be absent says so by not being required."""
    flat = {key: value for key, value in raw.items() if key != "anyOf"}
    if "anyOf" not in raw:
        return flat
    kinds = [kind for kind in raw["anyOf"] if kind != {"type": "null"}]
    if len(kinds) != 1:
        raise SchemaError(f"{where}: a field has one type")
    return {**kinds[0], **flat}


def _string(flat: Schema, converted: Schema, where: str) -> Schema:
    if "enum" in converted:
        return {}
    if "maxLength" not in flat:
        raise SchemaError(f"{where}: a text without maxLength has rules without bounded cost")
    if "x-vacancy-check" not in flat:
        return {}
    for replaced in ("pattern", "minLength"):
        converted.pop(replaced, None)
    return {"x-kubernetes-validations": [checked(flat, where)]}


def _bounds(flat: Schema) -> Schema:
    """Bounds in the older form that custom resources take: a number, and whether it is itself excluded."""
    bounds: Schema = {}
    for plain, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if exclusive in flat:
            bounds |= {plain: flat[exclusive], exclusive: True}
        elif plain in flat:
            bounds[plain] = flat[plain]
    return bounds
