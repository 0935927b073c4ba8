"""A learned threshold: what load the owner's own use of a GPU usually has, and a little above.

Invariant: nobody can teach it past the cap, and whatever makes it refuse more takes effect at once, while
what makes it lend more comes slowly. The failure this prevents is a week of somebody's work that makes a game
look like the usual state of the card. Rejected: mean and deviation, which one long render moves, and a window
of samples, which forgets a month in a day and costs memory.

The model (version 1): loads in bins of 1 %, each weighted by the seconds for which it was observed and halved
with every 7 days of observed time. The target is the 95th percentile plus 10 points, at least 10 and at most
the cap. The threshold starts at 10, follows a lower target at once, and rises by at most 2 points for each
observed hour. It is calibrated after 10 observed minutes. Time from which nothing may be learned does not
count as observed.

Usage: `learned.observe(load, seconds)` for each sample and the time it stands for; `saved()` and
`Learned.restore` carry it over a restart.
"""

from __future__ import annotations

from dataclasses import dataclass

from vacancy_agent.core.facts import Percent, Seconds

MODEL_VERSION = 1
"""Of the saved form and of what its numbers mean."""
BINS = 101
FLOOR = Percent(10.0)
MARGIN = 10.0
PERCENTILE = 0.95
HALF_LIFE_S = 7 * 86_400.0
RISE_PER_S = 2.0 / 3600.0
READY_S = Seconds(600.0)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was learned, as it is kept."""

    device: str
    """UUID or PCI address of the GPU it was learned on."""
    bins: tuple[float, ...]
    observed: Seconds
    threshold: Percent
    version: int = MODEL_VERSION

    def fits(self, device: str) -> bool:
        """Whether it can be taken over for this device by this version of the model."""
        return (
            self.version == MODEL_VERSION
            and self.device == device
            and len(self.bins) == BINS
            and all(0.0 <= weight < float("inf") for weight in self.bins)
            and self.observed >= 0.0
            and 0.0 <= self.threshold < BINS
        )


class Learned:
    """The threshold of one device."""

    def __init__(self, device: str, cap: Percent) -> None:
        self.device = device
        self.cap = cap
        self.threshold = FLOOR
        self.observed = Seconds(0.0)
        """Observed time in all; it does not decay."""
        self._bins = [0.0] * BINS

    @classmethod
    def restore(cls, saved: Calibration, cap: Percent) -> Learned:
        """What `saved` says, under this cap."""
        one = cls(saved.device, cap)
        one._bins = list(saved.bins)
        one.observed = saved.observed
        one.threshold = Percent(min(max(saved.threshold, FLOOR), cap))
        return one

    def saved(self) -> Calibration:
        """What to keep."""
        return Calibration(self.device, tuple(self._bins), self.observed, self.threshold)

    @property
    def calibrated(self) -> bool:
        """Enough was observed for the threshold to mean something."""
        return self.observed >= READY_S

    @property
    def minutes(self) -> float:
        """Minutes observed so far."""
        return self.observed / 60.0

    @property
    def target(self) -> Percent:
        """Where the threshold goes."""
        return Percent(min(max(self._percentile() + MARGIN, FLOOR), self.cap))

    def recap(self, cap: Percent) -> None:
        """Another cap: a lower one takes effect at once."""
        self.cap = cap
        self.threshold = Percent(min(self.threshold, cap))

    def observe(self, load: Percent, seconds: Seconds) -> None:
        """The owner's load was `load` for so long."""
        if seconds <= 0.0:
            return
        kept = 0.5 ** (seconds / HALF_LIFE_S)
        self._bins = [weight * kept for weight in self._bins]
        self._bins[min(max(int(load), 0), BINS - 1)] += seconds
        self.observed = Seconds(self.observed + seconds)
        risen = self.threshold + RISE_PER_S * seconds
        self.threshold = Percent(min(self.target, risen))

    def _percentile(self) -> float:
        wanted = PERCENTILE * sum(self._bins)
        below = 0.0
        for load, weight in enumerate(self._bins):
            below += weight
            if below >= wanted:
                return float(load)
        return float(BINS - 1)  # rounding


class Timed:
    """How long each sample stands for: back to the one before, where that could be learned from too."""

    def __init__(self, longest: Seconds) -> None:
        """`longest`: seconds between two samples past which the time between them was not observed."""
        self._longest = longest
        self._last: Seconds | None = None

    def since_last(self, awake: Seconds) -> Seconds:
        """Seconds observed; `awake` is on the clock that stands still in suspend."""
        last, self._last = self._last, awake
        between = 0.0 if last is None else awake - last
        return Seconds(between if 0.0 < between <= self._longest else 0.0)

    def interrupt(self) -> None:
        """What comes next does not belong to what was seen before."""
        self._last = None
