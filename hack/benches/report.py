"""Figures under their fixed names, printed with their goals; a missing one is said to be missing."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benches.machine import machine, machine_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MIB = 1 << 20
AT_LEAST, AT_MOST = ">=", "<="
GOALS: dict[str, tuple[str, float]] = {
    "rps_c32_nginx": (AT_LEAST, 0.52),
    "rps_c256_nginx": (AT_LEAST, 0.50),
    "rps_c32_litellm": (AT_LEAST, 100.0),
    "rps_c32_vllm_router": (AT_LEAST, 1.5),
    "added_p50_c1_nginx": (AT_MOST, 1.6),
    "streams256_delivered": (AT_LEAST, 0.97),
    "chunk_delay_p99_aiohttp": (AT_MOST, 0.125),
    "body64_peak_ratio": (AT_MOST, 1.15),
    "cancel256_s": (AT_MOST, 0.025),
    "client_gone_s": (AT_MOST, 0.010),
    "cut_p95_s": (AT_MOST, 0.100),
    "decide_s": (AT_MOST, 1e-6),
    "rss_alone_bytes": (AT_MOST, 50.0 * MIB),
    "cpu_idle": (AT_MOST, 0.002),
}


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` (0 to 1) of `values` do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


median = statistics.median


def verdict(key: str, value: float) -> str:
    """The goal beside a figure, and whether it is reached; nothing where there is none."""
    if key not in GOALS:
        return ""
    sign, goal = GOALS[key]
    reached = value >= goal if sign == AT_LEAST else value <= goal
    return f"goal {sign} {goal:g}: {'reached' if reached else 'NOT REACHED'}"


@dataclass(slots=True)
class Report:
    """What one benchmark measured."""

    bench: str
    figures: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    machine: dict[str, object] = field(default_factory=machine)

    def start(self) -> None:
        """Say what is measured, and on what."""
        print(f"{self.bench}\n{machine_line(self.machine)}", flush=True)

    def note(self, text: str) -> None:
        """One line of progress or of raw readings."""
        print(f"  {text}", flush=True)

    def add(self, key: str, value: float) -> None:
        """Record a figure."""
        self.figures[key] = value

    def miss(self, key: str, why: str) -> None:
        """Record that a figure could not be measured here."""
        self.missing[key] = why

    def finish(self) -> None:
        """Print the figures."""
        print("figures")
        for key, value in self.figures.items():
            print(f"  {key:<26} {value:<12.6g} {verdict(key, value)}".rstrip())
        for key, why in self.missing.items():
            print(f"  {key:<26} missing: {why}")

    def write(self, path: Path) -> None:
        """Write the figures in their fixed shape."""
        content = {"bench": self.bench, "machine": self.machine, "figures": self.figures}
        path.write_text(json.dumps(content, indent=2) + "\n")
