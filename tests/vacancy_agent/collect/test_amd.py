from __future__ import annotations

from vacancy_agent.collect.amd import AmdProbe
from vacancy_agent.core.facts import Unknown


async def test_amd_is_unknown() -> None:
    assert await AmdProbe().sample() == Unknown("AMD GPUs are not supported yet")
