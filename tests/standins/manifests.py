"""A complete LendingHost manifest as plain data, and one-place changes to it."""

from __future__ import annotations

import copy
import re
from typing import Any

from vacancy_api.lending_host import LendingHost

GPU_A = "GPU-5c89852c-d268-4dfc-8d9a-7b3d3a9a1b2c"
GPU_B = "GPU-00000000-1111-2222-3333-444444444444"
REMOVE: Any = object()

_FULL: dict[str, Any] = {
    "apiVersion": "vacancy.dev/v1alpha1",
    "kind": "LendingHost",
    "metadata": {"name": "gaming-box", "namespace": "lending", "labels": {"site": "home"}},
    "spec": {
        "external": {"address": "192.168.1.20", "wakeOnLan": "00:1a:2b:3c:4d:5e"},
        "pausedUntil": "2030-01-31T18:00:00Z",
        "schedule": {
            "timeZone": "Europe/Berlin",
            "windows": [{"days": ["Mon", "Tue"], "from": "22:00", "to": "06:00"}],
        },
        "owner": {"processes": ["steam"], "foreground": {"applications": ["vlc"]}},
        "resources": [
            {
                "name": "gpu",
                "type": "nvidia",
                "device": GPU_A,
                "capacity": {"minFreeMiB": 1024},
                "pressure": {"mode": "fixed", "thresholdPercent": 20},
            },
            {"name": "ram", "type": "memory"},
            {"name": "cpu", "type": "cpu", "capacity": {"maxUtilizationPercent": 80}},
        ],
        "upstreams": [
            {
                "name": "vllm",
                "dialect": "openai",
                "target": "http://127.0.0.1:8000",
                "port": 8471,
                "resource": "gpu",
                "alsoRequires": ["ram"],
                "credentialSecretRef": {"name": "key"},
                "service": "llm",
                "models": {
                    "default": {"minFreeMiB": 8000},
                    "items": [{"name": "m", "minFreeMiB": 6000, "residentMinFreeMiB": 100}],
                },
            },
            {
                "name": "ollama",
                "dialect": "ollama",
                "target": "http://[::1]:11434",
                "port": 8472,
                "resource": "gpu",
            },
        ],
        "access": {"listen": "0.0.0.0", "tls": {"secretRef": {"name": "cert"}}},
        "limits": {"maxRequestBodyMiB": 32},
    },
}


def manifest(**changes: Any) -> dict[str, Any]:
    """The full manifest, with changes such as `spec__upstreams_0__port=80` (`REMOVE` takes a key away)."""
    data = copy.deepcopy(_FULL)
    for place, value in changes.items():
        change(data, re.sub(r"_(\d+)(?=__|$)", r"[\1]", place).replace("__", "."), value)
    return data


def change(data: dict[str, Any], path: str, value: Any) -> None:
    """Sets (or, with `REMOVE`, takes away) what is at `path`, such as `spec.upstreams[0].port`."""
    parts = [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", path)]
    at: Any = data
    for part in parts[:-1]:
        at = at.setdefault(part, {}) if isinstance(at, dict) else at[part]
    if value is REMOVE:
        del at[parts[-1]]
    else:
        at[parts[-1]] = value


def host(**changes: Any) -> LendingHost:
    """The full manifest with changes, as a model."""
    return LendingHost.model_validate(manifest(**changes))
