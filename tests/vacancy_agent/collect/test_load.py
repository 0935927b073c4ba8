from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.clock import FakeClock
from standins.sink import RecordingSink
from vacancy_agent.collect.freshness import Freshness
from vacancy_agent.collect.load import LoadLoop, NoLoadProbe
from vacancy_agent.core.facts import Instant, Seconds
from vacancy_agent.core.owner_load import Attributed, Failed, NotPossible

if TYPE_CHECKING:
    from vacancy_agent.core.owner_load import LoadSample


class Probe:
    """Takes its time, during which the machine may sleep."""

    def __init__(self, clock: FakeClock, freshness: Freshness, takes: float, *, sleeps: bool = False) -> None:
        self.clock, self.freshness, self.takes, self.sleeps = clock, freshness, takes, sleeps

    async def sample(self) -> LoadSample:
        at = self.clock.now()
        self.clock.advance(self.takes)
        if self.sleeps:
            self.freshness.resumed(self.clock.now())
        return Attributed("GPU-1", (), at)

    def woke(self) -> None:
        pass


@pytest.mark.parametrize(
    ("takes", "sleeps", "why"),
    [(15.0, False, None), (15.1, False, "too long"), (1.0, True, "slept during the sample")],
)
async def test_what_says_nothing_about_now_is_no_sample(takes: float, sleeps: bool, why: str | None) -> None:
    clock, sink, freshness = FakeClock(), RecordingSink(), Freshness(Seconds(15.0))
    loop = LoadLoop(
        "gpu", Probe(clock, freshness, takes, sleeps=sleeps), sink, clock, freshness, Seconds(2.0)
    )
    await loop._sample()
    (sample,) = sink.pressure["gpu"]
    if why is None:
        assert sample == Attributed("GPU-1", (), Instant(1000.0))
    else:
        assert isinstance(sample, Failed)
        assert why in sample.why


async def test_a_platform_that_cannot_tell_says_so() -> None:
    probe = NoLoadProbe()
    probe.woke()
    assert isinstance(await probe.sample(), NotPossible)
