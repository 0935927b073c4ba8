from __future__ import annotations

from typing import Any

import pytest

from standins.manifests import GPU_A, GPU_B, manifest
from vacancy_api.check_resources import check_resources
from vacancy_api.problems import path_of


def found(resources: Any) -> dict[str, str]:
    return {path_of(problem.loc): problem.message for problem in check_resources({"resources": resources})}


def gpu(**more: Any) -> dict[str, Any]:
    return {"name": "g", "type": "nvidia", **more}


def test_the_full_manifest_has_no_problem() -> None:
    assert list(check_resources(manifest()["spec"])) == []


@pytest.mark.parametrize(
    ("resources", "path", "piece"),
    [
        ([gpu(), {"name": "g", "type": "cpu"}], "resources[1].name", "own name"),
        ([gpu(device=GPU_A), gpu(name="h")], "resources[1].device", "required where more than one"),
        ([gpu(device=GPU_A), gpu(name="h", device=GPU_A.lower())], "resources[1].device", "each GPU once"),
        ([{"name": "m", "type": "memory", "device": GPU_A}], "resources[0].device", "only for nvidia"),
        ([{"name": "m", "type": "cpu", "memory": "unified"}], "resources[0].memory", "only for nvidia"),
        ([{"name": "m", "type": "memory", "pressure": {}}], "resources[0].pressure", "only for nvidia"),
        (
            [{"name": "c", "type": "cpu", "capacity": {"minFreeMiB": 1}}],
            "resources[0].capacity.minFreeMiB",
            "use maxUtilizationPercent",
        ),
        (
            [gpu(capacity={"maxUtilizationPercent": 50})],
            "resources[0].capacity.maxUtilizationPercent",
            "use minFreeMiB for nvidia",
        ),
        (
            [gpu(pressure={"mode": "fixed"})],
            "resources[0].pressure.thresholdPercent",
            "required with mode fixed",
        ),
        ([gpu(pressure={"thresholdPercent": 5})], "resources[0].pressure.thresholdPercent", "mode learned"),
        (
            [gpu(pressure={"mode": "off", "thresholdPercent": 5})],
            "resources[0].pressure.thresholdPercent",
            "no effect with mode off",
        ),
    ],
)
def test_problems(resources: Any, path: str, piece: str) -> None:
    assert list(found(resources)) == [path]
    assert piece in found(resources)[path]


@pytest.mark.parametrize(
    "resources",
    [
        [gpu(device=GPU_A), gpu(name="h", device=GPU_B)],
        [gpu(), {"name": "a", "type": "amd"}],
        [gpu(memory="unified", pressure={"mode": "off"})],
        [{"name": "c", "type": "cpu", "capacity": {"minFreeMiB": 0}}],
        [{"name": "x", "type": "gpuu", "pressure": {}, "device": "?"}],
        [None, 3, "x", {}, {"type": [], "capacity": 3, "pressure": "fixed"}],
        "none",
    ],
)
def test_no_problem(resources: Any) -> None:
    assert found(resources) == {}


def test_a_word_that_is_no_mode_is_not_judged_twice() -> None:
    assert found([gpu(pressure={"mode": False, "thresholdPercent": 3})]) == {}
