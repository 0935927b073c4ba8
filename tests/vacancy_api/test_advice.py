from __future__ import annotations

from typing import Any

import pytest

from standins.manifests import REMOVE, host
from vacancy_api.advice import advice


def advised(**changes: Any) -> dict[str, str]:
    return {item.path: item.message for item in advice(host(**changes))}


BASE = {"spec__resources_2": REMOVE}


def test_a_manifest_without_surprises() -> None:
    assert advised(**BASE) == {}


@pytest.mark.parametrize(
    ("changes", "path", "piece"),
    [
        ({"spec__upstreams_1__dialect": "comfyui"}, "spec.upstreams[1]", "dedicated to borrowed work"),
        ({"spec__access__listen": "127.0.0.1"}, "spec.access.listen", "only this machine"),
        ({"spec__access__listen": "::1"}, "spec.access.listen", "only this machine"),
        (
            {"spec__access__allowUnauthenticatedRemote": True},
            "spec.access.allowUnauthenticatedRemote",
            "without a token",
        ),
        ({"spec__upstreams_0__management": "allow"}, "spec.upstreams[0].management", "delete"),
        (
            {"spec__upstreams_1__forwardAuthorization": True},
            "spec.upstreams[1].forwardAuthorization",
            "plain HTTP",
        ),
        ({"spec__upstreams_0__ownerScope": "resource"}, "spec.upstreams[0].ownerScope", "keeps lending"),
        ({"spec__upstreams_0__assumeEndedAfter": "5m"}, "spec.upstreams[0].assumeEndedAfter", "5m"),
        ({"spec__upstreams": []}, "spec.upstreams", "nothing is lent"),
        ({"spec__lending": False}, "spec.lending", "nothing is lent"),
        ({"spec__schedule__windows": []}, "spec.schedule.windows", "nothing is ever lent"),
        ({"spec__resources_0__enabled": False}, "spec.resources[0].enabled", "refuse"),
        ({"spec__upstreams_0__alsoRequires": []}, "spec.resources[1]", "no upstream uses 'ram'"),
        (
            {"spec__resources_0__capacity": {}},
            "spec.upstreams[1].models.default.minFreeMiB",
            "however little is free",
        ),
        (
            {"spec__resources_0__capacity": {}, "spec__upstreams_0__models__items": [{"name": "m"}]},
            "spec.upstreams[0].models.items[0].minFreeMiB",
            "however little is free",
        ),
    ],
)
def test_surprises(changes: dict[str, Any], path: str, piece: str) -> None:
    assert piece in advised(**BASE, **changes).get(path, "")


def test_a_second_name_for_the_hosts_memory() -> None:
    more = {"name": "ram2", "type": "memory"}
    assert "run at the same time" in advised(spec__resources_2=more)["spec.resources[2]"]


def test_a_server_that_another_upstream_unloads() -> None:
    shared = {
        "spec__upstreams_0__dialect": "ollama",
        "spec__upstreams_1__dialect": "ollama",
        "spec__upstreams_0__target": "http://127.0.0.1:11434",
        "spec__upstreams_1__target": "http://127.0.0.1:11434",
        "spec__upstreams_1__ownerScope": "resource",
    }
    told = advised(**BASE, **shared)["spec.upstreams[1].target"]
    assert "unloads the server when the owner returns" in told
    kept = shared | {"spec__upstreams_0__yieldOnVeto": False}
    assert "spec.upstreams[1].target" not in advised(**BASE, **kept)
