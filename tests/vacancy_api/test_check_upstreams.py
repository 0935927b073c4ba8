from __future__ import annotations

from typing import Any

import pytest

from standins.manifests import manifest
from vacancy_api.check_upstreams import check_upstreams
from vacancy_api.problems import path_of

RESOURCES = [{"name": "gpu", "type": "nvidia"}, {"name": "ram", "type": "memory"}]


def found(*upstreams: Any, resources: Any = RESOURCES) -> dict[str, str]:
    spec = {"resources": resources, "upstreams": list(upstreams)}
    return {path_of(problem.loc): problem.message for problem in check_upstreams(spec)}


def test_the_full_manifest_has_no_problem() -> None:
    assert list(check_upstreams(manifest()["spec"])) == []


@pytest.mark.parametrize(
    ("upstream", "path", "piece"),
    [
        ({"resource": "gpuu"}, "resource", "did you mean 'gpu'?"),
        ({"resource": "zzz"}, "resource", "name one of: gpu, ram"),
        ({"resource": "gpu", "alsoRequires": ["ran"]}, "alsoRequires[0]", "did you mean 'ram'?"),
        ({"resource": "gpu", "alsoRequires": ["gpu"]}, "alsoRequires[0]", "already the upstream's resource"),
        ({"resource": "gpu", "alsoRequires": ["ram", "ram"]}, "alsoRequires[1]", "listed twice"),
        ({"dialect": "llamacpp", "yieldOnVeto": True}, "yieldOnVeto", "cannot be asked to unload"),
        ({"dialect": "ollama", "priorityScheduling": True}, "priorityScheduling", "only for vLLM"),
        (
            {"forwardAuthorization": True, "credentialSecretRef": {"name": "s"}},
            "forwardAuthorization",
            "contradicts credentialSecretRef",
        ),
        ({"models": {"items": [{"name": "m"}, {"name": "m"}]}}, "models.items[1].name", "merge"),
        (
            {"models": {"default": {"residentMinFreeMiB": 1}}},
            "models.default.residentMinFreeMiB",
            "more than minFreeMiB",
        ),
        (
            {"models": {"items": [{"name": "m", "minFreeMiB": 5, "residentMinFreeMiB": 6}]}},
            "models.items[0].residentMinFreeMiB",
            "more than minFreeMiB",
        ),
    ],
)
def test_problems(upstream: dict[str, Any], path: str, piece: str) -> None:
    problems = found(upstream)
    assert list(problems) == [f"upstreams[0].{path}"]
    assert piece in problems[f"upstreams[0].{path}"]


def test_names_are_unique() -> None:
    assert list(found({"name": "a"}, {"name": "b"}, {"name": "a"})) == ["upstreams[2].name"]


@pytest.mark.parametrize("resources", [[{"type": "cpu"}], ["x"], "x", {"name": "gpu"}, [{"name": 3}]])
def test_nothing_is_called_missing_while_a_name_cannot_be_read(resources: Any) -> None:
    assert found({"resource": "gpuu"}, resources=resources) == {}


def test_without_any_resource_the_message_says_none() -> None:
    assert "one of: none" in found({"resource": "gpu"}, resources=[])["upstreams[0].resource"]


@pytest.mark.parametrize(
    "upstream",
    [
        {"dialect": "vllm", "yieldOnVeto": True},
        {"dialect": "comfyui", "yieldOnVeto": True},
        {"dialect": "openai", "yieldOnVeto": False, "priorityScheduling": True},
        {"alsoRequires": "ram", "models": []},
        {"models": {"default": {"minFreeMiB": "x", "residentMinFreeMiB": 3}}},
    ],
)
def test_no_problem(upstream: dict[str, Any]) -> None:
    assert found(upstream) == {}
