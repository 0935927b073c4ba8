from __future__ import annotations

import asyncio

import pytest

from vacancy_agent.core.facts import Evidence
from vacancy_agent.platform.presence import HEADLESS, UNREADABLE, UNSUPPORTED, FixedPresence


@pytest.mark.parametrize(
    ("source", "evidence"),
    [
        pytest.param(HEADLESS, Evidence.ABSENT, id="a headless host has no owner at it"),
        pytest.param(UNSUPPORTED, Evidence.UNSUPPORTED, id="macOS does not refuse"),
        pytest.param(UNREADABLE, Evidence.UNCLEAR, id="a platform whose backend is to come refuses"),
    ],
)
async def test_fixed_answers(source: FixedPresence, evidence: Evidence) -> None:
    presence = await source.read()
    assert presence.evidence is evidence
    assert presence.why


@pytest.mark.looptime
async def test_nothing_ever_changes() -> None:
    told: list[object] = []
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3600):
            await HEADLESS.watch(lambda: told.append("changed"), told.append)
    await HEADLESS.close()
    assert told == []
