"""Rules that every field of the contract keeps, because the custom resource is generated from it."""

from __future__ import annotations

import re
import types
import typing
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, ValidationError

from standins.manifests import host, manifest
from vacancy_api.agent_config import AgentConfig
from vacancy_api.lending_host import LendingHost, LendingHostSpec
from vacancy_api.status import LendingHostStatus
from vacancy_api.wording import json_names, submodel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

ROOTS: tuple[type[BaseModel], ...] = (LendingHost, AgentConfig, LendingHostStatus)


def fields_of(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, info in json_names(model).items():
        yield f"{above}{name}", info
        inner = submodel(info.annotation)
        if inner is not None:
            yield from fields_of(inner, f"{above}{name}.")


EVERY = [(f"{root.__name__}.{path}", info) for root in ROOTS for path, info in fields_of(root)]


def test_every_field_is_described() -> None:
    assert [path for path, info in EVERY if not (info.description or "").endswith(".")] == []


def test_no_unions_tuples_sets() -> None:
    def strange(annotation: Any) -> bool:
        origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (typing.Union, types.UnionType) and (len(parts) != 2 or type(None) not in parts):
            return True
        if origin in (tuple, set, frozenset):
            return True
        return origin is not typing.Literal and any(strange(part) for part in parts)

    assert [path for path, info in EVERY if strange(info.annotation)] == []


def unbounded(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    kind = schema.get("type")
    if kind == "string" and not {"maxLength", "enum", "const"} & schema.keys():
        yield path
    if kind == "array" and "maxItems" not in schema:
        yield path
    for key, inner in {**schema.get("properties", {}), **schema.get("$defs", {})}.items():
        yield from unbounded(inner, f"{path}.{key}")
    for inner in [*([schema["items"]] if "items" in schema else []), *schema.get("anyOf", [])]:
        yield from unbounded(inner, f"{path}[]")


@pytest.mark.parametrize("model", [LendingHostSpec, LendingHostStatus])
def test_every_list_and_text_is_bounded(model: type[BaseModel]) -> None:
    assert list(unbounded(model.model_json_schema())) == []


def test_descriptions_name_the_default_and_the_bounds() -> None:
    wrong = []
    for path, info in fields_of(LendingHostSpec):
        default = info.default
        text = info.description or ""
        if isinstance(default, (str, int)):
            spelled = str(default).lower() if isinstance(default, bool) else str(default)
            wrong += [] if re.search(rf"Default {re.escape(spelled)}(\.|,| for)", text) else [path]
        elif not info.is_required() and default is None:
            wrong += [] if re.search(r"Absent: |only there|Default |Needed when", text) else [path]
        for bound in re.findall(r"[gl]e=(\d+)", str(info.metadata)):
            wrong += [] if bound in text or "to minFreeMiB" in text else [f"{path}: {bound}"]
    assert wrong == []


def test_models_are_frozen_and_strict() -> None:
    one = host()
    with pytest.raises(ValidationError, match="frozen"):
        one.spec.lending = False  # type: ignore[misc]
    with pytest.raises(ValidationError, match="valid boolean"):
        LendingHostSpec.model_validate({"lending": "true"})


def test_python_names_are_not_names_of_the_manifest() -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        LendingHostSpec.model_validate({"paused_until": "2030-01-31T18:00:00Z"})


def test_what_must_hold_between_fields_holds_for_every_instance() -> None:
    with pytest.raises(ValidationError) as caught:
        host(spec__upstreams_0__port=8470, spec__upstreams_1__resource="gpuu")
    assert {error["loc"] for error in caught.value.errors()} == {
        ("spec", "upstreams", 0, "port"),
        ("spec", "upstreams", 1, "resource"),
    }


def test_an_empty_spec_is_the_table_of_defaults() -> None:
    assert LendingHostSpec.model_validate({}).model_dump(by_alias=True, exclude_none=True) == {
        "lending": True,
        "owner": {
            "presence": "auto",
            "idleAfter": "10m",
            "releaseAfter": "5m",
            "processes": [],
            "foreground": {"fullScreen": True, "applications": []},
        },
        "sampling": {"interval": "3s", "pressureInterval": "2s"},
        "resources": [],
        "upstreams": [],
        "access": {"apiPort": 8470, "trustLoopback": False, "allowUnauthenticatedRemote": False},
        "limits": {
            "maxRequestBodyMiB": 64,
            "maxConnections": 256,
            "maxTunnels": 16,
            "headerReadTimeout": "10s",
            "bodyReadTimeout": "2m",
            "bodyIdleTimeout": "20s",
            "writeStallTimeout": "1m",
            "keepAliveTimeout": "75s",
            "tunnelIdleTimeout": "10m",
        },
    }


def test_dumping_and_reading_again_changes_nothing() -> None:
    one = LendingHost.model_validate(manifest())
    again = LendingHost.model_validate(one.model_dump(by_alias=True, exclude_none=True))
    assert again == one
