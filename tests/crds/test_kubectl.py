"""What people see of the resource through kubectl."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from standins.manifests import manifest

if TYPE_CHECKING:
    from lab.kube_client import KubeClient

pytestmark = pytest.mark.kube
GROUP = "/apis/vacancy.dev/v1alpha1"
NOW = "2026-01-01T00:00:00Z"
STATUS: dict[str, Any] = {
    "observedGeneration": 1,
    "lastSeen": NOW,
    "conditions": [
        {"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": NOW},
        {"type": "Lendable", "status": "False", "reason": "OwnerActive", "lastTransitionTime": NOW},
    ],
    "agent": {
        "version": "1.2.3",
        "address": "192.168.1.20",
        "summary": {"freeVRAM": "11.5Gi", "models": ["qwen3:8b", "llama3"], "active": 2},
        "lending": {"allowed": False, "pausedUntil": "2030-01-31T18:00:00Z", "by": "spec"},
    },
}


def applied(kube: KubeClient, namespace: str, **changes: Any) -> None:
    data = manifest(metadata__namespace=namespace, **changes)
    kube.kubectl("apply", "-f", "-", stdin=json.dumps(data))


def report(kube: KubeClient, namespace: str, status: dict[str, Any], manager: str) -> Any:
    """A status by server-side apply, as agent and operator write it."""
    body = {
        "apiVersion": "vacancy.dev/v1alpha1",
        "kind": "LendingHost",
        "metadata": {"name": "gaming-box"},
        "status": status,
    }
    path = f"{GROUP}/namespaces/{namespace}/lendinghosts/gaming-box/status?fieldManager={manager}&force=true"
    return kube.request("PATCH", path, body, content_type="application/apply-patch+yaml")


def columns(kube: KubeClient, namespace: str, *more: str) -> dict[str, str]:
    """The one line of `kubectl get lh`, by column."""
    head, line = kube.kubectl("get", "lh", "-n", namespace, *more).stdout.splitlines()
    starts = [head.index(name) for name in head.split()]
    ends = [*starts[1:], None]
    return {
        name: line[start:end].strip() for name, start, end in zip(head.split(), starts, ends, strict=True)
    }


def test_the_columns_of_get(kube: KubeClient, kube_namespace: str) -> None:
    applied(kube, kube_namespace)
    assert report(kube, kube_namespace, STATUS, "vacancy-agent").status == 200
    shown = columns(kube, kube_namespace)
    assert list(shown) == ["NAME", "READY", "LENDABLE", "REASON", "FREE-VRAM", "MODELS", "ACTIVE", "AGE"]
    assert shown["NAME"] == "gaming-box"
    assert (shown["READY"], shown["LENDABLE"], shown["REASON"]) == ("True", "False", "OwnerActive")
    assert (shown["FREE-VRAM"], shown["ACTIVE"]) == ("11.5Gi", "2")
    assert shown["MODELS"] == '["qwen3:8b","llama3"]'
    wide = columns(kube, kube_namespace, "-o", "wide")
    assert list(wide)[8:] == ["ADDRESS", "PAUSED-UNTIL", "AGENT", "LAST-SEEN"]
    assert (wide["ADDRESS"], wide["PAUSED-UNTIL"]) == ("192.168.1.20", "2030-01-31T18:00:00Z")
    assert wide["AGENT"] == "1.2.3"
    assert wide["LAST-SEEN"].endswith(("d", "y"))


def test_a_host_without_status_is_shown_too(kube: KubeClient, kube_namespace: str) -> None:
    applied(kube, kube_namespace)
    assert columns(kube, kube_namespace, "-o", "wide")["READY"] == ""


def test_category_short_name_and_wait(kube: KubeClient, kube_namespace: str) -> None:
    applied(kube, kube_namespace)
    report(kube, kube_namespace, STATUS, "vacancy-agent")
    assert "gaming-box" in kube.kubectl("get", "lending", "-n", kube_namespace).stdout
    wait = ("wait", "--for=condition=Ready", "--timeout=5s", "lh/gaming-box", "-n", kube_namespace)
    assert "condition met" in kube.kubectl(*wait).stdout


@pytest.mark.parametrize(
    ("path", "piece"),
    [
        ("lh", "A machine that lends."),
        ("lh.spec.upstreams.onOwnerReturn", "Work that runs when the owner returns"),
        ("lh.spec.owner.idleAfter", "Time without input after which a session counts as idle"),
        ("lh.spec.resources.pressure", "How the owner's load on the GPU is judged"),
        ("lh.status.agent.upstreams.reason", "Reason code of the refusal"),
        ("lh.status.conditions.lastTransitionTime", "RFC 3339 time of the last change"),
    ],
)
def test_explain_is_documentation(kube: KubeClient, path: str, piece: str) -> None:
    assert piece in " ".join(kube.kubectl("explain", path).stdout.split())


def test_unknown_fields_are_refused_by_every_way_of_applying(kube: KubeClient, kube_namespace: str) -> None:
    text = json.dumps(manifest(metadata__namespace=kube_namespace, spec__upstreams_0__drainTimeOut="1s"))
    for way in (["create"], ["apply"], ["apply", "--server-side"]):
        refused = kube.kubectl(*way, "-f", "-", stdin=text, check=False)
        assert refused.returncode != 0
        assert "drainTimeOut" in refused.stderr, way
    assert "No resources found" in kube.kubectl("get", "lh", "-n", kube_namespace).stderr


def test_a_wrong_edit_changes_nothing(kube: KubeClient, kube_namespace: str) -> None:
    applied(kube, kube_namespace)
    patch = '{"spec":{"access":{"apiPort":8472}}}'
    target = ("lh", "gaming-box", "-n", kube_namespace)
    refused = kube.kubectl("patch", *target, "--type=merge", "-p", patch, check=False)
    assert "upstream ollama: this port is that of the API (spec.access.apiPort)" in refused.stderr
    assert kube.kubectl("get", *target, "-o", "jsonpath={.metadata.generation}").stdout == "1"


def test_one_upstream_can_be_changed_by_its_name(kube: KubeClient, kube_namespace: str) -> None:
    """Lists are maps by name: two managers can own different entries, and an entry keeps its fields."""
    applied(kube, kube_namespace)
    change = {
        "apiVersion": "vacancy.dev/v1alpha1",
        "kind": "LendingHost",
        "metadata": {"name": "gaming-box", "namespace": kube_namespace},
        "spec": {"upstreams": [{"name": "ollama", "slots": 4}]},
    }
    apply = ("apply", "--server-side", "--field-manager=tuner", "--force-conflicts", "-f", "-")
    refused = kube.kubectl(*apply, stdin=json.dumps(change), check=False)
    assert refused.returncode == 0, refused.stderr
    path = "jsonpath={range .spec.upstreams[*]}{.name}={.slots} {end}"
    shown = kube.kubectl("get", "lh", "gaming-box", "-n", kube_namespace, "-o", path).stdout
    assert shown.split() == ["vllm=1", "ollama=4"]


def test_status_has_two_owners(kube: KubeClient, kube_namespace: str) -> None:
    applied(kube, kube_namespace)
    ready, lendable = STATUS["conditions"]
    agent = {"agent": STATUS["agent"], "conditions": [lendable]}
    assert report(kube, kube_namespace, agent, "vacancy-agent").status == 200
    operator = {"observedGeneration": 1, "conditions": [ready]}
    answer = report(kube, kube_namespace, operator, "vacancy-operator")
    assert {each["type"] for each in answer.body["status"]["conditions"]} == {"Ready", "Lendable"}
    assert answer.body["status"]["agent"]["version"] == "1.2.3"
    assert answer.body["metadata"]["generation"] == 1


def test_a_status_does_not_touch_the_spec(kube: KubeClient, kube_namespace: str) -> None:
    applied(kube, kube_namespace)
    answer = report(kube, kube_namespace, {"agent": {"version": "1"}}, "vacancy-agent")
    assert answer.status == 422
    assert "status.agent.lending: Required value" in answer.body["message"]
