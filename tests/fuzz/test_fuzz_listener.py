"""50,000 malformed or ambiguous requests, 10,000 for each dialect, against a real listener.

Only listed codes come back, nothing raises, and whatever reaches the upstream is what an independent judge
would have let through: its route, its model, its headers, its bytes.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

import pytest

from standins.fuzz_cases import cases
from standins.fuzz_rig import Found, FuzzRig
from standins.http_sockets import LOOPS

if TYPE_CHECKING:
    from pathlib import Path

NUMBER = 10_000
DIALECTS = ("openai", "llamacpp", "ollama", "comfyui", "chatterbox")

pytestmark = pytest.mark.component


async def run(folder: Path, dialect: str, seed: int, number: int) -> tuple[Found, FuzzRig]:
    rng = Random(seed)  # noqa: S311 - the same requests every time
    rig = FuzzRig(folder, dialect)
    await rig.start()
    try:
        found = await rig.fuzz(lambda: cases(rng, dialect), number)
    finally:
        await rig.close()
    return found, rig


@pytest.mark.parametrize("dialect", DIALECTS)
def test_only_listed_codes_and_nothing_unjudged_reaches_the_upstream(tmp_path: Path, dialect: str) -> None:
    with asyncio.Runner(loop_factory=list(LOOPS.values())[-1]) as runner:
        found, rig = runner.run(run(tmp_path, dialect, 20_260, NUMBER))
    assert found.wrong == [], "\n".join(found.wrong)
    assert found.served >= NUMBER
    # The fuzz is worth its name: much is refused, for every kind of reason, and much is let through.
    assert found.statuses[200, "reached"] > NUMBER // 10
    assert len(found.statuses) >= 8, found.statuses
    assert rig.lending.host.counters_of("up").admitted
