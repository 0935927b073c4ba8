"""Fixtures for every test. What belongs to one part lives in `standins/fixtures_*.py`."""

from __future__ import annotations

import asyncio

from hypothesis import HealthCheck, settings

pytest_plugins = [
    "standins.fixtures_agents",
    "standins.fixtures_kube",
    "standins.fixtures_lending",
    "standins.fixtures_llama",
    "standins.fixtures_logind",
    "standins.fixtures_nvidia_smi",
    "standins.fixtures_ollama",
]

# How long one example takes says how busy the machine is, not whether the code is right.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# looptime asks the policy for a loop in tests that have none; the policy of Python < 3.12 then makes one that
# nobody closes, and the warning about it fails some innocent test later.
asyncio.set_event_loop(None)
