"""What a model took from free memory so far: a measured prior for its next request.

Invariant: a prior is the largest drop seen while only jobs of one key ran on the resource; it only grows. A
drop that several models may have caused is credited to none of them, nor is one of a request with runner
options of its own: a borrower could make a model look large to everybody else, for good. Rejected: dividing
a drop between models, which turns two measurements into two guesses.

Usage: `began` when a job took a resource, `sampled` with every reading of it, `ended` with the first one
after the last job left it (a model that stays loaded shows there, however short the job was): the board does
both. `of` gives the mapping for `Ask.prior`, the same object until it changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from vacancy_agent.core.facts import MiB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MOST_KEYS = 512
"""Names of models come from borrowers: past this many, the key that was learned first is forgotten."""


class PriorKey(NamedTuple):
    """What a footprint belongs to."""

    upstream: str
    model: str
    """In the one spelling that names are compared by; `forget` when another digest comes under it."""
    context: int | None = None


@dataclass(slots=True)
class _Watch:
    """One stretch of work on a resource."""

    key: PriorKey | None
    """None: several models run, or one with options of its own; nothing can be learned."""
    free_before: MiB


class Priors:
    """Learned footprints of one host."""

    def __init__(self) -> None:
        self._learned: dict[PriorKey, Mapping[str, MiB]] = {}
        self.watches: dict[str, _Watch] = {}
        """By resource; while there are any, a reading may teach something."""

    def of(self, key: PriorKey) -> Mapping[str, MiB] | None:
        """Largest measured drop by resource; None: nothing measured yet."""
        return self._learned.get(key)

    def began(self, key: PriorKey | None, free: Mapping[str, MiB]) -> None:
        """A job of `key` begins; `free` is what each of its memory resources shows, itself not included.

        None: what it takes stands for no other request.
        """
        for resource, before in free.items():
            watch = self.watches.setdefault(resource, _Watch(key, before))
            if watch.key != key:
                watch.key = None

    def sampled(self, resource: str, free: MiB) -> bool:
        """A reading of a resource; True when it taught something."""
        watch = self.watches.get(resource)
        if watch is None or watch.key is None:
            return False
        drop = MiB(watch.free_before - free)
        known = self._learned.get(watch.key, _NOTHING)
        if drop <= known.get(resource, 0):
            return False
        self._learn(watch.key, {**known, resource: drop})
        return True

    def ended(self, resources: Iterable[str]) -> None:
        """The last job left these resources."""
        for resource in resources:
            self.watches.pop(resource, None)

    def forget(self, upstream: str, model: str) -> None:
        """The name stands for another model now."""
        for key in [key for key in self._learned if (key.upstream, key.model) == (upstream, model)]:
            del self._learned[key]

    def items(self) -> Iterator[tuple[PriorKey, Mapping[str, MiB]]]:
        """Everything learned, to be saved."""
        return iter(list(self._learned.items()))

    def load(self, saved: Iterable[tuple[PriorKey, Mapping[str, MiB]]]) -> None:
        """Take over what was saved; of two measurements the larger stays."""
        for key, drops in saved:
            known = self._learned.get(key, _NOTHING)
            larger = {name: max(drop, known.get(name, drop)) for name, drop in drops.items()}
            self._learn(key, {**known, **larger})

    def _learn(self, key: PriorKey, drops: dict[str, MiB]) -> None:
        self._learned[key] = MappingProxyType(drops)
        if len(self._learned) > MOST_KEYS:
            del self._learned[next(iter(self._learned))]


_NOTHING: Mapping[str, MiB] = MappingProxyType({})
