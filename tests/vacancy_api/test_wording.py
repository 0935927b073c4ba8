from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from standins.manifests import manifest
from vacancy_api.lending_host import LendingHost
from vacancy_api.wording import json_names, submodel, unknown_field, word


def message(written: str | None = None, **changes: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        LendingHost.model_validate(manifest(**changes))
    return word(caught.value.errors()[0], LendingHost, written)


@pytest.mark.parametrize(
    ("changes", "written", "expected"),
    [
        (
            {"spec__upstreams_0__name": False},
            "no",
            'must be text: YAML reads no as false; write "no" in quotes',
        ),
        ({"spec__upstreams_0__name": 7}, "7", 'must be text; write "7" in quotes'),
        (
            {"spec__owner__idleAfter": 10},
            "10",
            "must be a duration: write 10s if seconds are meant",
        ),
        (
            {"spec__upstreams_0__assumeEndedAfter": 30},
            None,
            "must be a duration: write 30s if seconds are meant",
        ),
        ({"spec__upstreams_0__name": None}, None, "must be text; got nothing"),
        ({"spec__upstreams_0__port": "80"}, None, "must be a whole number: write 80 without quotes"),
        ({"spec__upstreams_0__port": 80.5}, "80.5", "must be a whole number; got 80.5"),
        ({"spec__upstreams_0__port": 0}, "0", "must be at least 1; got 0"),
        ({"spec__upstreams_0__port": 70000}, "70000", "must be at most 65535; got 70000"),
        ({"spec__lending": "True"}, None, "must be true or false: write true without quotes"),
        ({"spec__lending": 1}, "1", "must be true or false; got 1"),
        ({"spec__upstreams": {}}, None, "must be a list; got a mapping"),
        ({"spec__owner": []}, None, "must be a mapping; got a list"),
        ({"spec__upstreams_0__alsoRequires": ["a"] * 32}, None, "must have at most 31 entries; got 32"),
        (
            {"spec__upstreams_0__ownerScope": "hosts"},
            None,
            "must be one of host, resource; got 'hosts'; did you mean host?",
        ),
        (
            {"spec__resources_0__pressure__mode": False},
            "off",
            'must be one of learned, fixed, off: YAML reads off as false; write "off" in quotes',
        ),
        ({"spec__resources_1__type": "RAM"}, None, "did you mean memory?"),
        ({"spec__resources_1__type": "disk"}, None, "must be one of nvidia, amd, memory, cpu; got 'disk'"),
    ],
)
def test_messages(changes: dict[str, Any], written: str | None, expected: str) -> None:
    assert expected in message(written, **changes)


@pytest.mark.parametrize(
    ("loc", "expected"),
    [
        (("spec", "upstrems"), "did you mean upstreams?"),
        (("spec", "upstreams", 0, "drain_timeout"), "did you mean drainTimeout?"),
        (("spec", "upstreams", 0, "minFreeMiB"), "it belongs to spec.resources[].capacity"),
        (("spec", "zzz"), "remove it, or use one of access, external"),
    ],
)
def test_unknown_fields(loc: tuple[str | int, ...], expected: str) -> None:
    assert expected in unknown_field(LendingHost, loc)


def test_a_missing_field_is_explained() -> None:
    with pytest.raises(ValidationError) as caught:
        LendingHost.model_validate(manifest(spec__upstreams_0={}))
    assert word(caught.value.errors()[0], LendingHost, None).startswith("is required: Name of the upstream")


def test_models_are_found_in_annotations() -> None:
    spec = submodel(json_names(LendingHost)["spec"].annotation)
    assert spec is not None
    assert submodel(json_names(spec)["external"].annotation).__name__ == "ExternalSpec"  # type: ignore[union-attr]
    assert submodel(json_names(spec)["upstreams"].annotation).__name__ == "UpstreamSpec"  # type: ignore[union-attr]
    assert submodel(json_names(spec)["lending"].annotation) is None
