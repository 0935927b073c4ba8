"""Builders of settings and boards for tests: what a test does not name is as harmless as it can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vacancy_agent.core.board import Board
from vacancy_agent.core.facts import (
    CpuCapacity,
    Evidence,
    Instant,
    MemoryCapacity,
    MiB,
    Percent,
    Presence,
    Ready,
    WallTime,
)
from vacancy_agent.core.settings import (
    Dialect,
    HostSettings,
    LendingSettings,
    OwnerSettings,
    ResourceSettings,
    ResourceType,
    SamplingSettings,
    Target,
    UpstreamSettings,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

NOON = WallTime(1_772_366_400.0)
"""2026-03-01T12:00:00Z, a Sunday."""
START = Instant(1000.0)


def resource(name: str = "gpu", kind: ResourceType = ResourceType.NVIDIA, **more: Any) -> ResourceSettings:
    return ResourceSettings(name=name, type=kind, **more)


def upstream(name: str = "llm", requires: tuple[str, ...] = ("gpu",), **more: Any) -> UpstreamSettings:
    facts: dict[str, Any] = {
        "dialect": Dialect.LLAMACPP,
        "target": Target("http", "127.0.0.1", 8080),
        "port": 9000,
    }
    return UpstreamSettings(name=name, requires=requires, **(facts | more))


def host(
    upstreams: Iterable[UpstreamSettings] = (),
    resources: Iterable[ResourceSettings] = (),
    *,
    lending: LendingSettings | None = None,
    owner: OwnerSettings | None = None,
    sampling: SamplingSettings | None = None,
) -> HostSettings:
    """One upstream `llm` on one card `gpu`, unless said otherwise."""
    ups = tuple(upstreams) or (upstream(),)
    res = tuple(resources) or tuple(
        resource(name, ResourceType.CPU if name == "cpu" else ResourceType.NVIDIA)
        for name in dict.fromkeys(name for up in ups for name in up.requires)
    )
    return HostSettings(
        lending=lending or LendingSettings(),
        owner=owner or OwnerSettings(),
        sampling=sampling or SamplingSettings(),
        resources={r.name: r for r in res},
        upstreams={u.name: u for u in ups},
    )


def memory(free: int = 20_000, total: int = 24_564) -> MemoryCapacity:
    return MemoryCapacity(MiB(free), MiB(total))


def cpu(percent: float = 5.0) -> CpuCapacity:
    return CpuCapacity(Percent(percent))


def seen(evidence: Evidence = Evidence.ABSENT, at: float = START) -> Ready[Presence]:
    return Ready(Presence(evidence, f"a test saw {evidence}"), Instant(at))


def observe(board: Board, now: float = START, *, free: int = 20_000) -> None:
    """Everything is read afresh, and nobody is there."""
    for name, settings in board.settings.resources.items():
        value = cpu() if settings.type is ResourceType.CPU else memory(free)
        board.set_capacity(name, Ready(value, Instant(now)))
    board.set_presence(seen(at=now), Instant(now))


def vacant(settings: HostSettings | None = None, now: float = START, *, free: int = 20_000) -> Board:
    """A board on which a request is admitted."""
    board = Board(settings or host())
    observe(board, now, free=free)
    return board
