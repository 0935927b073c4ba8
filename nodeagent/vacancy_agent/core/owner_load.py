"""Whose load a GPU has: the processes that use it, less those that serve borrowed work.

Invariant: a load is the owner's unless the process that causes it is known to serve an upstream. A wrong
guess the other way would hide a game; this way round it refuses a borrower. Rejected: total load minus what
is known of the borrower's, which turns every error of two measurements into room to lend.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Percent, Seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vacancy_agent.core.facts import Instant

NOTEWORTHY = Percent(10.0)
"""Total load from which on the processes that cause it should be in the list."""
SAME_TIME = Seconds(5.0)
"""How far apart a total and a list may be to be held against each other."""


@dataclass(frozen=True, slots=True)
class GpuUser:
    """One user of a GPU (a process, or an open device that several share) and its load."""

    engines: Mapping[str, float]
    """Percent by engine over the sample's time; empty: it has the GPU open and did nothing."""
    upstreams: frozenset[str] = frozenset()
    """Whose process tree all its processes belong to; empty: not a served one, so the owner's."""


@dataclass(frozen=True, slots=True)
class Total:
    """A device's load without a word about whose it is."""

    load: Percent
    at: Instant


@dataclass(frozen=True, slots=True)
class Attributed:
    """A device's load by process."""

    device: str
    """UUID, else PCI address."""
    users: tuple[GpuUser, ...]
    at: Instant
    """When the sample began."""
    total: Total | None = None
    """The load of the whole device at about the same time, to hold the list against."""

    @property
    def owner(self) -> Percent:
        """The owner's load: sum within an engine, maximum over the engines."""
        return busiest(user.engines for user in self.users if not user.upstreams)

    @property
    def everything(self) -> Percent:
        """The load of all users."""
        return busiest(user.engines for user in self.users)

    def of(self, upstream: str) -> Percent:
        """The load of an upstream's own processes."""
        return busiest(user.engines for user in self.users if upstream in user.upstreams)

    @property
    def seen(self) -> frozenset[str]:
        """Upstreams of which a process has this GPU open."""
        return frozenset[str]().union(*(user.upstreams for user in self.users))


@dataclass(frozen=True, slots=True)
class Failed:
    """No sample this time; it may come again."""

    why: str


@dataclass(frozen=True, slots=True)
class NotPossible:
    """This platform, device or process cannot tell whose load it is, and will not learn to."""

    why: str


LoadSample = Attributed | Total | Failed | NotPossible


def busiest(engines: Iterable[Mapping[str, float]]) -> Percent:
    """Sum within each engine, then the highest, from 0 to 100."""
    sums: defaultdict[str, float] = defaultdict(float)
    for one in engines:
        for engine, load in one.items():
            sums[engine] += load
    return Percent(min(100.0, max(0.0, *sums.values(), 0.0)))


HIDDEN = (
    "the GPU works, but none of its processes can be seen from here: in a container this takes the host's "
    "process ids (hostPID)"
)


@dataclass(slots=True)
class HiddenUsers:
    """Finds out that the list of processes has nothing to show although the GPU works.

    Total and list are read at different moments, so one disagreement is none: two totals, taken one after the
    other, must each be high while the list showed no load.
    """

    ever_seen: bool = False
    """Some process of the device was in the list once: then a silent list is a failure, not a limit."""
    blind: bool = False
    """The list was found to show nobody: its silence is believed no more until somebody is in it."""
    _against: set[Instant] = field(default_factory=set)

    def judge(self, sample: Attributed, *, explained: bool) -> LoadSample:
        """The sample, or what is to be made of it.

        Args:
            sample: with the total of about the same time, where there is one.
            explained: borrowed work is, or just was, on the GPU and may not be counted by process (ROCm).
        """
        if sample.users:
            self.ever_seen, self.blind = True, False
        if self.blind:
            return NotPossible(HIDDEN)
        total = sample.total
        if total is None or total.load < NOTEWORTHY or sample.everything > 0 or explained:
            self._against.clear()
            return sample
        if abs(sample.at - total.at) <= SAME_TIME:
            self._against.add(total.at)
        if len(self._against) < 2:  # noqa: PLR2004 - two, one after the other
            return sample
        if self.ever_seen:
            return Failed(HIDDEN)
        self.blind = True
        return NotPossible(HIDDEN)
