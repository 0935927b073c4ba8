"""What the kernel tells of an open GPU device: `/proc/PID/fdinfo/FD` of the drivers amdgpu, i915 and xe.

Source of the format: the kernel's "DRM client usage stats". amdgpu and i915 count nanoseconds for each engine
(`drm-engine-NAME: N ns`), xe counts cycles against the cycles that passed (`drm-cycles-NAME`,
`drm-total-cycles-NAME`). An engine with several units has `drm-engine-capacity-NAME`. All counters only grow,
so a load is the difference of two looks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vacancy_agent.core.parse.pci import normal_pci

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNSIGNED = re.compile(r"([0-9]{1,20})(?:\s+ns)?", re.ASCII)
_NS, _CYCLES, _TOTAL, _UNITS = "drm-engine-", "drm-cycles-", "drm-total-cycles-", "drm-engine-capacity-"


class FdinfoError(Exception):
    """An open GPU device whose counters cannot be read as documented; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One kind of unit of a GPU, as one client used it."""

    used: int
    """Nanoseconds, or cycles where `passed` is given."""
    passed: int | None = None
    """Cycles that passed; None: nanoseconds are counted, to be held against a clock."""
    units: int = 1


@dataclass(frozen=True, slots=True)
class DrmClient:
    """One opening of a GPU. Descriptors that were duplicated or handed on are the same client."""

    driver: str
    pci: str
    client: int
    engines: Mapping[str, Engine]

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from others."""
        return self.pci, self.client


def parse_fdinfo(text: bytes) -> DrmClient | None:
    """Read one file; None: it is no GPU, or a driver that counts nothing.

    Raises:
        FdinfoError: it is one that counts, and a line is not as documented.
    """
    if b"drm-driver" not in text:
        return None
    pairs = dict(_pairs(text.decode("utf-8", "replace")))
    engines = _engines(pairs)
    if not engines:
        return None
    pci = normal_pci(pairs.get("drm-pdev", ""))
    if pci is None:
        raise FdinfoError(f"{pairs['drm-driver']} names no PCI address: {pairs.get('drm-pdev', 'none')[:40]}")
    return DrmClient(pairs["drm-driver"], pci, _number(pairs, "drm-client-id"), engines)


def _pairs(text: str) -> list[tuple[str, str]]:
    lines = (line.partition(":") for line in text.split("\n"))
    return [(key, value.strip()) for key, _, value in lines if key.startswith("drm-")]


def _engines(pairs: Mapping[str, str]) -> dict[str, Engine]:
    engines = {}
    for key in pairs:
        if key.startswith(_UNITS):
            continue
        if key.startswith(_NS):
            name = key.removeprefix(_NS)
            engines[name] = Engine(_number(pairs, key), None, _units(pairs, name))
        elif key.startswith(_CYCLES):
            name = key.removeprefix(_CYCLES)
            engines[name] = Engine(_number(pairs, key), _number(pairs, _TOTAL + name), _units(pairs, name))
    return engines


def _units(pairs: Mapping[str, str], engine: str) -> int:
    return max(1, _number(pairs, _UNITS + engine)) if _UNITS + engine in pairs else 1


def _number(pairs: Mapping[str, str], key: str) -> int:
    match = _UNSIGNED.fullmatch(pairs.get(key, ""))
    if match is None:
        raise FdinfoError(f"{pairs['drm-driver']}: {key} reads {pairs.get(key, 'nothing')[:40]!r}")
    return int(match[1])


def load_of(before: Engine | None, after: Engine, elapsed_ns: float) -> float:
    """Percent of the engine that a client used between two looks; a client not seen before began at zero.

    Args:
        before: at the first look; None: it was not there.
        after: at the second.
        elapsed_ns: nanoseconds between the two; of no account where cycles are counted.
    """
    used = after.used - (before.used if before is not None else 0)
    if after.passed is None:
        passed = elapsed_ns
    elif before is not None and before.passed is not None:
        passed = float(after.passed - before.passed)
    else:
        return 0.0  # how many cycles passed since it began is not told
    if used <= 0 or passed <= 0:
        return 0.0  # a driver may take a step back between two reads
    return min(100.0, 100.0 * used / passed / after.units)
