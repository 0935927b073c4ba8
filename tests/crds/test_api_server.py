"""A real API server takes what the models take, refuses what they refuse, and says what to change."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from standins.manifests import GPU_B, REMOVE, change, manifest
from standins.wrong_manifests import WRONG, Wrong
from vacancy_api.lending_host import LendingHostSpec
from vacancy_api.manifest import ManifestInvalid, parse_manifest

if TYPE_CHECKING:
    from lab.kube_client import Answer, KubeClient

pytestmark = pytest.mark.kube
HOSTS = "/apis/vacancy.dev/v1alpha1/namespaces/lending/lendinghosts"
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
ZONE = "spec.schedule.timeZone"
REQUIRED = {
    "spec",
    "metadata",
    "metadata.name",
    "spec.external.address",
    "spec.schedule.windows[0].to",
    "spec.access.tls.secretRef",
}
"""Fields whose absence is all that there is to say: "Required value"."""


@pytest.fixture(scope="module")
def cluster(kube: KubeClient) -> KubeClient:
    kube.make_namespace("lending")
    return kube


def judged(cluster: KubeClient, data: dict[str, Any]) -> Answer:
    """What the API server says to a manifest, as it says it to kubectl; nothing is stored."""
    data["metadata"] = {**data.get("metadata", {}), "namespace": "lending"} if "metadata" in data else {}
    return cluster.request("POST", f"{HOSTS}?fieldValidation=Strict&dryRun=All", data)


def causes(answer: Answer) -> dict[str, list[str]]:
    """Messages by field; the whole message where the body could not even be read."""
    found: dict[str, list[str]] = {}
    for cause in (answer.body.get("details") or {}).get("causes") or []:
        found.setdefault(cause.get("field", ""), []).append(cause["message"])
    return found or {"": [answer.body["message"]]}


@pytest.mark.parametrize("case", WRONG, ids=[f"{case.place}-{number}" for number, case in enumerate(WRONG)])
def test_wrong_manifests_are_refused_with_what_to_change(cluster: KubeClient, case: Wrong) -> None:
    data = manifest()
    change(data, case.place, case.new)
    answer = cluster.request("POST", f"{HOSTS}?fieldValidation=Strict&dryRun=All", data)
    if case.theirs is None:
        assert answer.status == 201
        return
    assert answer.status in {400, 422}
    messages = [text for texts in causes(answer).values() for text in texts]
    assert any(case.theirs in text for text in messages), messages
    assert not any("no such key" in text for text in messages) or case.place == "kind"


def test_a_refusal_names_the_field(cluster: KubeClient) -> None:
    for case in WRONG:
        data = manifest()
        change(data, case.place, case.new)
        answer = cluster.request("POST", f"{HOSTS}?fieldValidation=Strict&dryRun=All", data)
        if answer.status == 422 and case.path.startswith("spec."):
            parents = {re.sub(r"\[\d+\].*", "", case.path), case.path.rpartition(".")[0]}
            named = {case.path, re.sub(r"\[\d+\]$", "", case.path), *parents}
            assert named & set(causes(answer)), (case, causes(answer))


def test_two_mistakes_are_refused_by_both_or_by_neither(cluster: KubeClient) -> None:
    """Every mistake beside another one, which must not hide it: a sample of the pairs."""
    for first, second in [(WRONG[i], WRONG[(i * 7 + 13) % len(WRONG)]) for i in range(len(WRONG))]:
        data = manifest()
        try:
            change(data, first.place, first.new)
            change(data, second.place, second.new)
        except (KeyError, IndexError, TypeError, AttributeError):
            continue
        if not isinstance(data.get("metadata"), dict):
            continue
        try:
            parse_manifest(data)
            ours = True
        except ManifestInvalid:
            ours = False
        if {first.place, second.place} <= {ZONE}:
            continue
        answer = cluster.request("POST", f"{HOSTS}?fieldValidation=Strict&dryRun=All", data)
        assert (answer.status == 201) is ours, (first, second, answer.body)


VALID: list[dict[str, Any]] = [
    {},
    {"spec": {}},
    {"spec__external": REMOVE},
    {"spec__external__address": "fd00::7"},
    {"spec__external__wakeOnLan": "00-1A-2B-3C-4D-5E"},
    {"spec__pausedUntil": "2032-02-29T23:59:59.123456+05:30"},
    {"spec__schedule__timeZone": "America/Argentina/Buenos_Aires"},
    {"spec__schedule__timeZone": "Etc/GMT+1"},
    {"spec__schedule__windows": []},
    {"spec__schedule__windows_0__days": REMOVE},
    {"spec__owner__idleAfter": "24h", "spec__owner__releaseAfter": "0s"},
    {"spec__owner__idleAfter": "1h30m15s500ms"},
    {"spec__owner__processes": ["Elite Dangerous", "steam", "steam"]},
    {"spec__sampling__interval": "200ms"},
    {"spec__resources_0__device": "0000:01:00.0"},
    {"spec__resources_0__pressure": {"mode": "off"}},
    {"spec__resources_0__pressure": {}},
    {"spec__resources_1": {"name": "ram", "type": "nvidia", "device": GPU_B, "memory": "unified"}},
    {"spec__resources_1": {"name": "ram", "type": "amd"}},
    {"spec__resources_2__capacity": {}},
    {"spec__upstreams_0__target": "https://gpu-box.local"},
    {"spec__upstreams_0__target": "http://[::1]:65535"},
    {"spec__upstreams_0__target": "http://192.168.1.7:8471"},
    {"spec__upstreams_0__target": "http://localhost:8471", "spec__upstreams_0__port": 9000},
    {"spec__upstreams_0__alsoRequires": ["ram", "cpu"]},
    {"spec__upstreams_0__yieldOnVeto": False},
    {"spec__upstreams_1__yieldOnVeto": True},
    {"spec__upstreams_0__models__items_0__residentMinFreeMiB": 6000},
    {"spec__upstreams_0__models": {}},
    {"spec__upstreams": []},
    {"spec__access": {"listen": "::", "apiPort": 1, "tls": None}},
    {"spec__limits": {"maxRequestBodyMiB": 32, "maxBufferedBodyMiB": 32, "tunnelIdleTimeout": "24h"}},
    {"spec__external": None, "spec__schedule": None, "spec__resources_0__pressure": None},
]


def agree(cluster: KubeClient, data: dict[str, Any]) -> None:
    """The API server stores what the models read: the same fields with the same defaults."""
    answer = judged(cluster, data)
    assert answer.status == 201, answer.body
    filled = parse_manifest(data).spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert answer.body["spec"] == filled


@pytest.mark.parametrize("changes", VALID, ids=[json.dumps(each, default=str)[:60] for each in VALID])
def test_valid_manifests_are_taken_and_their_defaults_filled(
    cluster: KubeClient, changes: dict[str, Any]
) -> None:
    agree(cluster, manifest(**changes))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_examples_are_taken(cluster: KubeClient, file: Path) -> None:
    agree(cluster, yaml.safe_load(file.read_text(encoding="utf-8")))


def test_an_empty_spec_has_every_default(cluster: KubeClient) -> None:
    answer = judged(cluster, manifest(spec={}))
    whole = LendingHostSpec().model_dump(mode="json", by_alias=True, exclude_none=True)
    assert answer.body["spec"] == whole
    assert {"owner", "sampling", "access", "limits"} <= set(whole)


def test_as_many_as_there_may_be_of_everything(cluster: KubeClient) -> None:
    """The cost of the rules is bounded in fact, not only as estimated: the largest manifest is judged."""
    resources = [{"name": f"{'r' * 60}{n}", "type": "memory"} for n in range(32)]
    items = [{"name": f"{'m' * 250}{n}", "minFreeMiB": 9, "residentMinFreeMiB": 8} for n in range(64)]
    upstreams = [
        {
            "name": f"{'u' * 60}{n}",
            "dialect": "openai",
            "target": f"http://127.0.0.1:{n + 1}",
            "port": 20000 + n,
            "resource": resources[0]["name"],
            "alsoRequires": [each["name"] for each in resources[1:]],
            "models": {"items": items},
        }
        for n in range(64)
    ]
    agree(cluster, manifest(spec__resources=resources, spec__upstreams=upstreams))
