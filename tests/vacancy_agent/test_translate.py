"""Every field of a spec changes something on the agent's side, or is listed with the reason why not."""

from __future__ import annotations

from datetime import time
from typing import TYPE_CHECKING, Any

import pytest

from standins.manifests import GPU_B, host
from vacancy_agent.core.settings import (
    Dialect,
    Footprint,
    OnOwnerReturn,
    OwnerScope,
    PressureMode,
    PressureSettings,
    ResourceType,
    SecretRef,
    Target,
)
from vacancy_agent.translate import (
    NOT_THE_AGENTS,
    access_settings,
    host_settings,
    limits,
    models_named_twice,
)
from vacancy_api.lending_host import LendingHostSpec
from vacancy_api.wording import json_names, submodel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel

# Another value of each field in the full manifest, by the path of the field; a second entry where a change
# needs a companion to stay valid.
OTHER: dict[str, dict[str, Any]] = {
    "external.address": {"spec__external__address": "192.168.1.21"},
    "external.wakeOnLan": {"spec__external__wakeOnLan": "ff:1a:2b:3c:4d:5e"},
    "lending": {"spec__lending": False},
    "pausedUntil": {"spec__pausedUntil": "2030-01-31T18:00:01Z"},
    "schedule.timeZone": {"spec__schedule__timeZone": "Europe/Rome"},
    "schedule.windows[].days": {"spec__schedule__windows_0__days": ["Sun"]},
    "schedule.windows[].from": {"spec__schedule__windows_0__from": "22:01"},
    "schedule.windows[].to": {"spec__schedule__windows_0__to": "06:01"},
    "owner.presence": {"spec__owner__presence": "headless"},
    "owner.idleAfter": {"spec__owner__idleAfter": "11m"},
    "owner.releaseAfter": {"spec__owner__releaseAfter": "6m"},
    "owner.processes": {"spec__owner__processes": ["blender"]},
    "owner.foreground.fullScreen": {"spec__owner__foreground__fullScreen": False},
    "owner.foreground.applications": {"spec__owner__foreground__applications": ["mpv"]},
    "sampling.interval": {"spec__sampling__interval": "4s"},
    "sampling.pressureInterval": {"spec__sampling__pressureInterval": "1s"},
    "resources[].name": {
        "spec__resources_1__name": "memory",
        "spec__upstreams_0__alsoRequires": ["memory"],
    },
    "resources[].type": {"spec__resources_0__type": "amd"},
    "resources[].enabled": {"spec__resources_0__enabled": False},
    "resources[].device": {"spec__resources_0__device": GPU_B},
    "resources[].memory": {"spec__resources_0__memory": "unified"},
    "resources[].capacity.minFreeMiB": {"spec__resources_0__capacity__minFreeMiB": 1025},
    "resources[].capacity.maxUtilizationPercent": {"spec__resources_2__capacity__maxUtilizationPercent": 81},
    "resources[].pressure.mode": {"spec__resources_0__pressure": {"mode": "off"}},
    "resources[].pressure.thresholdPercent": {"spec__resources_0__pressure__thresholdPercent": 21},
    "resources[].pressure.capPercent": {"spec__resources_0__pressure__capPercent": 41},
    "resources[].pressure.engageAfter": {"spec__resources_0__pressure__engageAfter": "4s"},
    "resources[].pressure.releaseAfter": {"spec__resources_0__pressure__releaseAfter": "31s"},
    "upstreams[].name": {"spec__upstreams_0__name": "other"},
    "upstreams[].dialect": {"spec__upstreams_0__dialect": "llamacpp"},
    "upstreams[].target": {"spec__upstreams_0__target": "http://127.0.0.1:8001"},
    "upstreams[].port": {"spec__upstreams_0__port": 9000},
    "upstreams[].resource": {"spec__upstreams_0__resource": "cpu"},
    "upstreams[].alsoRequires": {"spec__upstreams_0__alsoRequires": ["ram", "cpu"]},
    "upstreams[].ownerScope": {"spec__upstreams_0__ownerScope": "resource"},
    "upstreams[].management": {"spec__upstreams_0__management": "allow"},
    "upstreams[].onOwnerReturn": {"spec__upstreams_0__onOwnerReturn": "cancel"},
    "upstreams[].drainTimeout": {"spec__upstreams_0__drainTimeout": "31s"},
    "upstreams[].completionTimeout": {"spec__upstreams_0__completionTimeout": "11m"},
    "upstreams[].assumeEndedAfter": {"spec__upstreams_0__assumeEndedAfter": "5m"},
    "upstreams[].yieldOnVeto": {"spec__upstreams_1__yieldOnVeto": False},
    "upstreams[].priorityScheduling": {"spec__upstreams_0__priorityScheduling": True},
    "upstreams[].slots": {"spec__upstreams_0__slots": 2},
    "upstreams[].models.default.minFreeMiB": {"spec__upstreams_0__models__default__minFreeMiB": 8001},
    "upstreams[].models.default.residentMinFreeMiB": {
        "spec__upstreams_0__models__default__residentMinFreeMiB": 1
    },
    "upstreams[].models.items[].name": {"spec__upstreams_0__models__items_0__name": "n"},
    "upstreams[].models.items[].minFreeMiB": {"spec__upstreams_0__models__items_0__minFreeMiB": 6001},
    "upstreams[].models.items[].residentMinFreeMiB": {
        "spec__upstreams_0__models__items_0__residentMinFreeMiB": 101
    },
    "upstreams[].forwardAuthorization": {"spec__upstreams_1__forwardAuthorization": True},
    "upstreams[].credentialSecretRef.name": {"spec__upstreams_0__credentialSecretRef__name": "other"},
    "upstreams[].credentialSecretRef.key": {"spec__upstreams_0__credentialSecretRef__key": "other"},
    "upstreams[].service": {"spec__upstreams_0__service": "other"},
    "access.listen": {"spec__access__listen": "10.0.0.1"},
    "access.apiPort": {"spec__access__apiPort": 8469},
    "access.trustLoopback": {"spec__access__trustLoopback": True},
    "access.allowUnauthenticatedRemote": {"spec__access__allowUnauthenticatedRemote": True},
    "access.tls.secretRef.name": {"spec__access__tls__secretRef__name": "other"},
    "limits.maxRequestBodyMiB": {"spec__limits__maxRequestBodyMiB": 33},
    "limits.maxBufferedBodyMiB": {"spec__limits__maxBufferedBodyMiB": 257},
    "limits.maxConnections": {"spec__limits__maxConnections": 257},
    "limits.maxTunnels": {"spec__limits__maxTunnels": 17},
    "limits.headerReadTimeout": {"spec__limits__headerReadTimeout": "11s"},
    "limits.bodyReadTimeout": {"spec__limits__bodyReadTimeout": "3m"},
    "limits.bodyIdleTimeout": {"spec__limits__bodyIdleTimeout": "21s"},
    "limits.writeStallTimeout": {"spec__limits__writeStallTimeout": "2m"},
    "limits.keepAliveTimeout": {"spec__limits__keepAliveTimeout": "76s"},
    "limits.tunnelIdleTimeout": {"spec__limits__tunnelIdleTimeout": "11m"},
}


def leaves(model: type[BaseModel], above: str = "") -> Iterator[str]:
    for name, info in json_names(model).items():
        inner = submodel(info.annotation)
        if inner is None:
            yield f"{above}{name}"
        else:
            mark = "[]" if "list[" in str(info.annotation) else ""
            yield from leaves(inner, f"{above}{name}{mark}.")


def translated(**changes: Any) -> object:
    spec = host(**changes).spec
    return host_settings(spec), access_settings(spec.access), limits(spec.limits)


def test_the_table_has_every_field() -> None:
    assert set(OTHER) == set(leaves(LendingHostSpec))


@pytest.mark.parametrize("path", OTHER)
def test_a_changed_field_changes_what_the_agent_sees(path: str) -> None:
    changed = translated(**OTHER[path]) != translated()
    assert changed is (path not in NOT_THE_AGENTS), f"{path} is lost between manifest and agent"


def test_what_is_listed_as_unused_exists() -> None:
    assert set(NOT_THE_AGENTS) <= set(OTHER)


def test_the_full_manifest() -> None:
    settings = host_settings(host().spec)
    assert settings.lending.paused_until == 1_896_112_800.0
    assert settings.lending.windows is not None
    assert settings.lending.windows[0].days == {0, 1}
    assert (settings.lending.windows[0].start, settings.lending.windows[0].end) == (time(22), time(6))
    assert list(settings.resources) == ["gpu", "ram", "cpu"]
    gpu = settings.resources["gpu"]
    assert (gpu.type, gpu.min_free, gpu.unified) == (ResourceType.NVIDIA, 1024, False)
    assert gpu.pressure == PressureSettings(mode=PressureMode.FIXED, required=True, threshold=20.0)  # type: ignore[arg-type]
    vllm = settings.upstreams["vllm"]
    assert vllm.requires == ("gpu", "ram")
    assert vllm.target == Target("http", "127.0.0.1", 8000)
    assert vllm.default_footprint == Footprint(8000, 0)  # type: ignore[arg-type]
    assert vllm.footprints == {"m": Footprint(6000, 100)}  # type: ignore[arg-type]
    assert vllm.credential == SecretRef("key", "token")
    assert settings.upstreams["ollama"].target == Target("http", "::1", 11434)
    assert settings.upstreams["ollama"].dialect is Dialect.OLLAMA


def test_defaults_are_those_of_the_settings() -> None:
    spec = LendingHostSpec.model_validate(
        {
            "resources": [{"name": "g", "type": "nvidia"}],
            "upstreams": [
                {"name": "u", "dialect": "ollama", "target": "http://h", "port": 1, "resource": "g"},
            ],
        }
    )
    settings = host_settings(spec)
    item = settings.upstreams["u"]
    assert (item.drain_timeout, item.completion_timeout, item.slots) == (30.0, 600.0, 1)
    assert (item.owner_scope, item.on_owner_return) == (OwnerScope.HOST, OnOwnerReturn.DRAIN)
    assert (item.yield_on_veto, item.assume_ended_after) == (True, None)
    assert (settings.owner.idle_after, settings.owner.release_after) == (600.0, 300.0)
    assert (settings.sampling.interval, settings.sampling.pressure_interval) == (3.0, 2.0)
    assert settings.lending.windows is None
    assert limits(spec.limits) == type(limits(spec.limits))()
    assert access_settings(spec.access) == type(access_settings(spec.access))()


@pytest.mark.parametrize(
    ("changes", "mode", "required"),
    [
        ({"spec__resources_0__pressure": None}, PressureMode.LEARNED, False),
        ({"spec__resources_0__pressure": {}}, PressureMode.LEARNED, True),
        ({"spec__resources_0__pressure": {"mode": "off"}}, PressureMode.OFF, False),
    ],
)
def test_pressure_that_is_written_out_is_required(
    changes: dict[str, Any], mode: PressureMode, required: bool
) -> None:
    resources = host_settings(host(**changes).spec).resources
    assert (resources["gpu"].pressure.mode, resources["gpu"].pressure.required) == (mode, required)
    assert resources["ram"].pressure.mode is PressureMode.OFF


def test_where_the_manifest_names_no_address_only_this_machine_is_answered() -> None:
    assert access_settings(host(spec__access={}).spec.access).listen == "127.0.0.1"


def test_an_empty_schedule_is_never_and_none_is_always() -> None:
    assert host_settings(host(spec__schedule__windows=[]).spec).lending.windows == ()
    assert host_settings(host(spec__schedule=None).spec).lending.windows is None


def test_settings_cannot_be_changed() -> None:
    settings = host_settings(host().spec)
    with pytest.raises(TypeError):
        settings.upstreams["x"] = settings.upstreams["vllm"]  # type: ignore[index]


def test_footprints_go_by_the_names_that_requests_are_judged_by() -> None:
    spec = host(
        spec__upstreams_1__dialect="ollama",
        spec__upstreams_1__models={"items": [{"name": "Small", "minFreeMiB": 7}, {"name": "hf.co/A/B:Q4"}]},
    ).spec
    assert list(models_named_twice(spec)) == []
    footprints = host_settings(spec).upstreams[spec.upstreams[1].name].footprints
    assert list(footprints) == ["small:latest", "hf.co/a/b:q4"]
    assert footprints["small:latest"].min_free == 7
