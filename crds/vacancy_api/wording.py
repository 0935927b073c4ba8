"""What is wrong with a field, in words that say what to change.

Pydantic knows the place and the kind of an error; its messages speak of input types and extra inputs. This
module words them for somebody who writes YAML: `off` became a boolean, a key is one letter off, a number is
quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from vacancy_api.fields import COMPLAINT, camel
from vacancy_api.problems import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

    from vacancy_api.loose import Loc

SAID_ELSEWHERE: Mapping[str, str] = {
    "vllm": "openai",
    "lmstudio": "openai",
    "llama-server": "llamacpp",
    "llama.cpp": "llamacpp",
    "gpu": "nvidia",
    "cuda": "nvidia",
    "rocm": "amd",
    "ram": "memory",
    "none": "off",
    "disabled": "off",
}
"""Words that people use for one of ours."""

Words = Callable[["ErrorDetails", str | None], str]


def word(error: ErrorDetails, root: type[BaseModel], written: str | None) -> str:
    """The message for one of pydantic's errors.

    Args:
        error: What pydantic found.
        root: The model that was validated.
        written: How a scalar was spelled in the file, where that is known and it is not text.
    """
    kind = error["type"]
    if kind == "missing":
        field = _field(root, error["loc"])
        return f"is required: {field.description}" if field and field.description else "is required"
    if kind == "extra_forbidden":
        return unknown_field(root, error["loc"])
    if kind == "string_type" and _lacks_unit(_field(root, error["loc"]), error["input"]):
        number = written or shown(error["input"])
        return f"must be a duration: write {number}s if seconds are meant"
    words = _WORDS.get(kind)
    return words(error, written) if words else error["msg"]


def _lacks_unit(field: FieldInfo | None, value: object) -> bool:
    """Whether a number stands where a duration belongs: in quotes alone it would be wrong again."""
    if field is None or isinstance(value, bool) or not isinstance(value, int):
        return False
    inner = (rule for part in get_args(field.annotation) for rule in getattr(part, "__metadata__", ()))
    checks = (getattr(rule, "schema", {}).get("x-vacancy-check", {}) for rule in (*field.metadata, *inner))
    return any(check.get("kind") == "duration" for check in checks)


def _text(error: ErrorDetails, written: str | None) -> str:
    value = error["input"]
    if isinstance(value, bool) and written is not None:
        return f'must be text: YAML reads {written} as {shown(value)}; write "{written}" in quotes'
    if isinstance(value, (bool, int, float)):
        return f'must be text; write "{written or shown(value)}" in quotes'
    return f"must be text; got {shown(value)}"


def _whole_number(error: ErrorDetails, _written: str | None) -> str:
    value = error["input"]
    if isinstance(value, str) and value.strip().isdigit():
        return f"must be a whole number: write {value.strip()[:20]} without quotes"
    return f"must be a whole number; got {shown(value)}"


def _truth(error: ErrorDetails, _written: str | None) -> str:
    value = error["input"]
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return f"must be true or false: write {value.lower()} without quotes"
    return f"must be true or false; got {shown(value)}"


def _choice(error: ErrorDetails, written: str | None) -> str:
    expected = str(error["ctx"]["expected"]).replace("'", "")
    choices = expected.replace(" or ", ", ").split(", ")
    value = error["input"]
    start = f"must be {expected}" if len(choices) == 1 else f"must be one of {', '.join(choices)}"
    if isinstance(value, bool) and written in choices:
        return f'{start}: YAML reads {written} as {shown(value)}; write "{written}" in quotes'
    if not isinstance(value, str):
        return f"{start}; got {shown(value)}"
    near = SAID_ELSEWHERE.get(value.lower(), "")
    lowered = {choice.lower(): choice for choice in choices}
    close = [near] if near in choices else get_close_matches(value.lower(), lowered, n=1)
    hint = f"; did you mean {lowered[close[0].lower()]}?" if close else ""
    return f"{start}; got {shown(value)}{hint}"


def _bound(comparison: str, name: str) -> Words:
    def words(error: ErrorDetails, _written: str | None) -> str:
        return f"must be {comparison} {error['ctx'][name]}; got {shown(error['input'])}"

    return words


def _length(comparison: str, name: str) -> Words:
    def words(error: ErrorDetails, _written: str | None) -> str:
        return f"must have {comparison} {error['ctx'][name]} entries; got {error['ctx']['actual_length']}"

    return words


def _shape(expected: str) -> Words:
    return lambda error, _written: f"must be {expected}; got {shown(error['input'])}"


_WORDS: Mapping[str, Words] = {
    COMPLAINT: lambda error, _written: error["msg"],
    "string_type": _text,
    "int_type": _whole_number,
    "int_from_float": _whole_number,
    "bool_type": _truth,
    "literal_error": _choice,
    "greater_than_equal": _bound("at least", "ge"),
    "less_than_equal": _bound("at most", "le"),
    "too_short": _length("at least", "min_length"),
    "too_long": _length("at most", "max_length"),
    "string_too_long": lambda error, _written: f"is longer than {error['ctx']['max_length']} characters",
    "list_type": _shape("a list"),
    "dict_type": _shape("a mapping"),
    "model_type": _shape("a mapping"),
}


def unknown_field(root: type[BaseModel], loc: Loc) -> str:
    """What to say about a key that no model below `root` knows at this place."""
    name = str(loc[-1])
    model = _model(root, loc[:-1])
    names = json_names(model) if model else {}
    loose = {known.lower(): known for known in names}
    close = get_close_matches(camel(name).lower(), loose, n=1, cutoff=0.75)
    if close:
        return f"is not a known field: did you mean {loose[close[0]]}?"
    elsewhere = next((place for known, place in _everywhere(root, "") if known == camel(name)), None)
    if elsewhere is not None:
        return f"is not known here: it belongs to {elsewhere}"
    return f"is not a known field: remove it, or use one of {', '.join(sorted(names))}"


def json_names(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model by the name that documents use."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def submodel(annotation: Any) -> type[BaseModel] | None:
    """The model inside `X`, `X | None`, `list[X]`; None where there is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := submodel(part))), None)


def _model(root: type[BaseModel], loc: Loc) -> type[BaseModel] | None:
    model: type[BaseModel] | None = root
    for part in loc:
        if isinstance(part, str) and model is not None:
            info = json_names(model).get(part)
            model = submodel(info.annotation) if info else None
    return model


def _field(root: type[BaseModel], loc: Loc) -> FieldInfo | None:
    model = _model(root, loc[:-1])
    return json_names(model).get(str(loc[-1])) if model else None


def _everywhere(model: type[BaseModel], above: str) -> Iterator[tuple[str, str]]:
    """Every field below a model with the path of what holds it."""
    for name, info in json_names(model).items():
        yield name, above
        inner = submodel(info.annotation)
        if inner is not None:
            mark = "[]" if "list[" in str(info.annotation) else ""
            yield from _everywhere(inner, f"{above}.{name}{mark}" if above else f"{name}{mark}")
