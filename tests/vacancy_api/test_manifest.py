"""A wrong manifest is told everything that is wrong with it, at its place, and what to change."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from standins.anything import ANYTHING
from standins.manifests import change, manifest
from standins.wrong_manifests import GPU, WRONG
from vacancy_api.advice import advice
from vacancy_api.lending_host import LendingHost
from vacancy_api.manifest import FieldError, ManifestInvalid, load_manifest, parse_manifest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


def errors_of(source: str | bytes | Path) -> tuple[FieldError, ...]:
    with pytest.raises(ManifestInvalid) as caught:
        load_manifest(source)
    return caught.value.errors


def test_the_full_manifest_is_valid_in_yaml_and_in_json() -> None:
    data = manifest()
    assert load_manifest(yaml.safe_dump(data)) == load_manifest(json.dumps(data)) == parse_manifest(data)


@pytest.mark.parametrize(
    ("place", "new", "path", "piece"),
    [case[:4] for case in WRONG],
    ids=[f"{case.place}-{number}" for number, case in enumerate(WRONG)],
)
def test_wrong_manifests(place: str, new: Any, path: str, piece: str) -> None:
    data = manifest()
    change(data, place, new)
    errors = errors_of(yaml.safe_dump(data))
    assert piece in {error.path: error.message for error in errors}.get(path, ""), errors


RENAMES = {"kind", "apiVersion", "spec", "metadata", f"{GPU}.name", "spec.resources[1].name"}
"""Changes that rightly make more than one error: what refers to the old name dangles."""
ALONE = [case for case in WRONG if case[0] not in RENAMES]


def test_one_mistake_makes_one_error() -> None:
    several = {}
    for place, new, path, *_ in ALONE:
        data = manifest()
        change(data, place, new)
        errors = errors_of(yaml.safe_dump(data))
        if len(errors) > 1:
            several[place, str(new)] = [str(error) for error in errors if error.path != path]
    assert several == {}


def test_errors_of_fields_do_not_hide_errors_between_fields() -> None:
    data = manifest(spec__upstreams_0__port="x", spec__upstreams_1__resource="gpuu", spec__lendin=True)
    errors = errors_of(yaml.safe_dump(data))
    assert {error.path for error in errors} == {
        "spec.upstreams[0].port",
        "spec.upstreams[1].resource",
        "spec.lendin",
    }


def test_errors_of_the_notation_do_not_hide_errors_of_fields() -> None:
    text = (
        "apiVersion: vacancy.dev/v1alpha1\nkind: LendingHost\nkind: LendingHost\nmetadata: {name: A}\n"
        "spec: {lending: !x true, pausedUntil: never}\n"
    )
    assert [(error.path, error.line) for error in errors_of(text)] == [
        ("kind", 3),
        ("spec.lending", 5),
        ("metadata.name", 4),
        ("spec.pausedUntil", 5),
    ]


@pytest.mark.parametrize(
    ("source", "piece"),
    [
        ("", "is empty"),
        ("just text", "must be a mapping; got 'just text'"),
        ("- a\n- b\n", "must be a mapping; got a list"),
        ("a: [\n", "is not valid YAML"),
        (b"a: \xff\n", "is not UTF-8"),
        ("a: 1\n---\nb: 1\n", "holds 2 documents"),
        ("x: " + "y" * 300_000, "is larger than"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_wrong_files(source: str | bytes, piece: str) -> None:
    assert any(piece in error.message and error.path == "" for error in errors_of(source))


def test_an_object_of_another_api_is_told_only_that() -> None:
    errors = errors_of("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {replicas: 1}\n")
    assert [error.path for error in errors] == ["apiVersion", "kind"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "No such file" in errors_of(tmp_path / "none.yaml")[0].message
    assert errors_of(tmp_path)[0].message.startswith("cannot be read")


def test_a_path_is_read_and_text_is_not_a_path(tmp_path: Path) -> None:
    file = tmp_path / "host.yaml"
    file.write_text(yaml.safe_dump(manifest()), encoding="utf-8")
    assert load_manifest(file).metadata.name == "gaming-box"
    assert "must be a mapping" in errors_of(str(file))[0].message


def test_what_the_api_server_adds_is_ignored() -> None:
    data = manifest()
    data["metadata"] |= {"uid": "u-1", "generation": 3, "resourceVersion": "9", "managedFields": [{}]}
    data["status"] = {"anything": 1}
    host = load_manifest(yaml.safe_dump(data))
    assert (host.metadata.uid, host.metadata.generation) == ("u-1", 3)
    assert parse_manifest(data) == host


def test_unquoted_times_mean_what_they_say() -> None:
    host = load_manifest(
        "apiVersion: vacancy.dev/v1alpha1\nkind: LendingHost\nmetadata: {name: a}\nspec:\n"
        "  pausedUntil: 2030-01-31T18:00:00Z\n"
        "  schedule: {timeZone: UTC, windows: [{from: 22:00, to: 06:00}]}\n"
    )
    assert host.spec.paused_until == "2030-01-31T18:00:00Z"
    assert host.spec.schedule is not None
    assert host.spec.schedule.windows[0].start == "22:00"


def test_an_empty_block_is_an_absent_one() -> None:
    data = manifest(spec__external=None, spec__schedule=None, spec__resources_0__pressure=None)
    spec = load_manifest(yaml.safe_dump(data)).spec
    assert (spec.external, spec.schedule, spec.resources[0].pressure) == (None, None, None)


def dialects_of(file: Path) -> list[str]:
    return [upstream.dialect for upstream in load_manifest(file).spec.upstreams]


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_examples_are_valid_and_leave_nothing_to_advise(file: Path) -> None:
    reminders = [f"spec.upstreams[{at}]" for at, one in enumerate(dialects_of(file)) if one == "comfyui"]
    assert [one.path for one in advice(load_manifest(file))] == reminders


def test_the_manifest_in_the_reference_is_valid() -> None:
    text = (EXAMPLES[0].parents[1] / "docs" / "manifest.md").read_text(encoding="utf-8")
    assert load_manifest(text.partition("```yaml\n")[2].partition("```")[0]).metadata.name == "workstation"


def test_there_are_examples() -> None:
    shown = {dialect for file in EXAMPLES for dialect in dialects_of(file)}
    assert shown >= {"ollama", "llamacpp", "openai", "comfyui"}


@given(ANYTHING)
def test_no_structure_raises_anything_else(data: object) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        load_manifest(json.dumps(data))
    assert caught.value.errors


@given(st.sampled_from(WRONG), st.sampled_from([case[0] for case in WRONG]), ANYTHING)
def test_no_damage_to_a_manifest_raises_anything_else(case: Any, place: str, value: object) -> None:
    data = manifest()
    for where, new in ((place, value), (case[0], case[1])):
        try:
            change(data, where, new)
        except (KeyError, IndexError, TypeError):
            continue
    try:
        host = parse_manifest(data)
    except ManifestInvalid:
        return
    assert LendingHost.model_validate(host.model_dump(by_alias=True)) == host


@given(st.text(st.sampled_from("apiVersion: kind LendingHost\n-[]{}&*!'\"spec,metadata#|>\t"), max_size=120))
def test_no_text_raises_anything_else(text: str) -> None:
    errors_of(text)


def test_reading_manifests_needs_neither_network_nor_loop() -> None:
    costly = {"aiohttp", "asyncio", "ssl", "kubernetes", "kopf", "httptools", "psutil"}
    program = f"import sys, vacancy_api.manifest; print(sorted({costly!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_a_file_of_nothing_but_unknown_keys_is_told_the_first_of_them() -> None:
    text = "apiVersion: vacancy.dev/v1alpha1\nkind: LendingHost\nmetadata: {name: a}\nspec:\n"
    errors = errors_of(text + "".join(f"  k{number}: 1\n" for number in range(3000)))
    assert len(errors) == 501
    assert errors[-1] == FieldError("", "and 2500 more errors")


def test_long_lists_are_told_their_length_in_reasonable_time() -> None:
    resources = [{"name": f"r{number}", "type": "cpu"} for number in range(1000)]
    upstreams = [{"name": f"u{number}", "resource": "x"} for number in range(1000)]
    data = manifest(spec__resources=resources, spec__upstreams=upstreams)
    with pytest.raises(ManifestInvalid) as caught:
        parse_manifest(data)
    found = {error.path: error.message for error in caught.value.errors}
    assert found["spec.resources"] == "must have at most 32 entries; got 1000"
