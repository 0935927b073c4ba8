"""Which served process tree a process belongs to, found from below.

A tree is looked up from the few processes that use a GPU upwards, one file for each generation, instead of
listing the whole table from the server downwards. A child whose parent has ended belongs to no tree any more
and counts as the owner's.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import ProcessIdentity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PROC = Path("/proc")
_GENERATIONS = 64
_NONE: frozenset[str] = frozenset()
_PARENT, _STARTED = 1, 19  # fields of `stat` after the name, which may contain anything


class Ancestry:
    """The trees of one look; make a new one for each."""

    def __init__(self, roots: Mapping[str, ProcessIdentity], proc: Path = PROC) -> None:
        """`roots`: by upstream, the process that serves it."""
        self._roots: dict[ProcessIdentity, frozenset[str]] = {}
        for upstream, identity in roots.items():
            self._roots[identity] = self._roots.get(identity, _NONE) | {upstream}
        self._proc = proc
        self._known: dict[int, frozenset[str]] = {}

    def upstreams_of(self, pids: Iterable[int]) -> frozenset[str]:
        """The upstreams whose tree all of these belong to; empty where one of them belongs to none."""
        found = [self._find(pid) for pid in pids]
        return frozenset.intersection(*found) if found else _NONE

    def _find(self, pid: int) -> frozenset[str]:
        if pid not in self._known:
            self._known[pid] = self._climb(pid)
        return self._known[pid]

    def _climb(self, pid: int) -> frozenset[str]:
        for _ in range(_GENERATIONS if self._roots else 0):
            looked = self._stat(pid)
            if looked is None:
                break
            identity, parent = looked
            if identity in self._roots:
                return self._roots[identity]
            if parent <= 1:
                break
            pid = parent
        return _NONE

    def _stat(self, pid: int) -> tuple[ProcessIdentity, int] | None:
        try:
            fields = (self._proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
            return ProcessIdentity(pid, float(fields[_STARTED])), int(fields[_PARENT])
        except (OSError, ValueError, IndexError):
            return None
