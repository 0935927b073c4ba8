"""Random hosts as plain values, and a second gate that judges them: dumb, slow, and written from the text.

The oracle shares no code with the gate: it reads the plain values, not the board.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from standins.hosts import NOON, START, cpu, host, memory, resource, seen, upstream
from standins.worlds_held import Held, Judged, judge, show
from vacancy_agent.core.board import Board, Pressure
from vacancy_agent.core.facts import (
    Evidence,
    Instant,
    MiB,
    Percent,
    Presence,
    Ready,
    Stale,
    Unknown,
    WallTime,
)
from vacancy_agent.core.gate import Ask
from vacancy_agent.core.lending import LocalPause
from vacancy_agent.core.settings import Dialect, Footprint, LendingSettings, OwnerScope, ResourceType
from vacancy_agent.core.shown import SlotsShown
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from vacancy_agent.core.settings import HostSettings

GPU = {ResourceType.NVIDIA, ResourceType.AMD}
AGES = [0.0, 3.9, 4.0, 4.1, 14.0, 15.0, 15.1, 60.0]
FREES = [0, 499, 500, 501, 8000, 20_000]
MODELS = [None, "small", "large", "unlisted"]


@dataclass
class Card:
    """One resource."""

    kind: ResourceType
    spec_enabled: bool
    switch: bool
    reading: str  # ready | unknown | stale
    age: float
    free: int
    percent: float
    min_free: int
    max_percent: float | None
    pressure: Pressure
    ended: float | None  # seconds ago
    let_go: float | None


@dataclass
class World:
    """One host at one moment."""

    spec_on: bool
    cluster: float | None  # seconds from now
    local: float | str | None
    schedule: bool
    presence: str  # never | unknown | stale | an Evidence
    presence_age: float
    vetoed: bool
    scope: OwnerScope
    cards: dict[str, Card]
    requires: tuple[str, ...]
    footprints: dict[str | None, tuple[int, int]]
    residency: tuple[str, float, bool] | None
    model: str | None
    prior: dict[str, MiB] | None
    now: float = START + 1000
    held: Held | None = None
    """What the upstream shows, where it is more than the slots of `residency`."""


ago = st.none() | st.sampled_from(AGES)
mostly = st.sampled_from([True, True, True, True, False])


@st.composite
def cards(draw: st.DrawFn, kind: ResourceType) -> Card:
    return Card(
        kind,
        draw(mostly),
        draw(mostly),
        draw(st.sampled_from(["ready"] * 6 + ["unknown", "stale"])),
        draw(st.sampled_from(AGES[:5] * 3 + AGES)),
        draw(st.sampled_from(FREES)),
        draw(st.sampled_from([0.0, 50.0, 50.5, 100.0])),
        draw(st.sampled_from([0, 0, 500])),
        draw(st.sampled_from([None, 50.0, 100.0])),
        draw(st.sampled_from([Pressure.OFF] * 4 + list(Pressure))),
        draw(ago),
        draw(ago),
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    sizes = st.sampled_from([(0, 0), (500, 0), (8000, 500), (500, 8000), (19_000, 300)])
    drawn = {
        "gpu": draw(cards(ResourceType.NVIDIA)),
        "ram": draw(cards(ResourceType.MEMORY)),
        "cpu": draw(cards(ResourceType.CPU)),
    }
    order = draw(st.permutations(list(drawn)))
    world = World(
        spec_on=draw(st.sampled_from([True] * 9 + [False])),
        cluster=draw(st.sampled_from([None] * 6 + [-5.0, 0.0, 7.5, 400.0])),
        local=draw(st.sampled_from([None] * 6 + [-5.0, 7.5, 400.0, "forever"])),
        schedule=draw(st.sampled_from([True] * 9 + [False])),
        presence=draw(
            st.sampled_from(
                ["absent"] * 8 + ["unsupported"] * 2 + ["never", "unknown", "stale", "unclear", "present"]
            )
        ),
        presence_age=draw(st.sampled_from(AGES[:5] * 3 + AGES)),
        vetoed=draw(st.sampled_from([False] * 5 + [True])),
        scope=draw(st.sampled_from(OwnerScope)),
        cards=drawn,
        requires=tuple(order[: draw(st.integers(1, 3))]),
        footprints={None: draw(sizes), "small": draw(sizes), "large": draw(sizes)},
        residency=draw(
            st.none()
            | st.tuples(
                st.sampled_from(["ready", "ready", "unknown", "stale"]), st.sampled_from(AGES[:4]), mostly
            )
        ),
        model=draw(st.sampled_from(MODELS)),
        prior=draw(
            st.none() | st.dictionaries(st.sampled_from(["gpu", "ram"]), st.sampled_from([MiB(1), MiB(9000)]))
        ),
    )
    # Most hosts would be refused by the first steps; two of three get past step 4, one of three past step 5.
    far = draw(st.sampled_from([0, 4, 5]))
    if far >= 4:
        world.spec_on, world.cluster, world.local, world.schedule = True, None, None, True
        world.presence, world.presence_age, world.vetoed = "absent", 3.0, False
    if far >= 5:
        for card in drawn.values():
            card.spec_enabled, card.switch, card.reading, card.age = True, True, "ready", 3.0
            card.min_free, card.max_percent, card.pressure = 0, None, Pressure.CLEAR
    return world


def settings_of(world: World) -> HostSettings:
    resources = [
        resource(
            name,
            card.kind,
            enabled=card.spec_enabled,
            min_free=MiB(card.min_free),
            max_utilization=None if card.max_percent is None else Percent(card.max_percent),
        )
        for name, card in world.cards.items()
    ]
    up = upstream(
        requires=world.requires,
        dialect=Dialect.LLAMACPP if world.held is None else world.held.dialect,
        owner_scope=world.scope,
        default_footprint=_footprint(world.footprints[None]),
        footprints={name: _footprint(size) for name, size in world.footprints.items() if name is not None},
    )
    lending = LendingSettings(
        enabled=world.spec_on,
        paused_until=None if world.cluster is None else WallTime(NOON + world.cluster),
        windows=None if world.schedule else (),
    )
    return host([up], resources, lending=lending)


def _footprint(size: tuple[int, int]) -> Footprint:
    return Footprint(MiB(size[0]), MiB(size[1]))


def board_of(world: World) -> Board:
    board = Board(settings_of(world))
    _presence(board, world)
    for name, card in world.cards.items():
        _card(board, name, card, world.now)
    if world.local is not None:
        until = None if isinstance(world.local, str) else WallTime(NOON + world.local)
        board.set_local_pause(LocalPause(until))
    if world.held is not None:
        show(board, world.held, world.now)
    elif world.residency is not None:
        kind, age, idle = world.residency
        at = Instant(world.now - age)
        readings = {
            "ready": Ready(SlotsShown(idle), at),
            "stale": Stale(SlotsShown(idle), at, "x"),
            "unknown": Unknown("x"),
        }
        board.set_residency("llm", readings[kind])
    return board


def _presence(board: Board, world: World) -> None:
    """Nothing at all for `never`: a veto without any sample cannot be."""
    if world.presence == "never":
        return
    if world.vetoed or world.presence == "present":
        at = Instant(world.now - world.presence_age - 1)
        board.set_presence(seen(Evidence.PRESENT, at), at)
    at = Instant(world.now - world.presence_age)
    if world.presence == "unknown":
        board.set_presence(Unknown("no answer"), Instant(world.now))
    elif world.presence == "stale":
        board.set_presence(Stale(Presence(Evidence.ABSENT, "x"), at, "slept"), Instant(world.now))
    else:
        board.set_presence(seen(Evidence(world.presence), at), at)


def _card(board: Board, name: str, card: Card, now: float) -> None:
    at = Instant(now - card.age)
    value = cpu(card.percent) if card.kind is ResourceType.CPU else memory(card.free)
    readings = {"ready": Ready(value, at), "stale": Stale(value, at, "x"), "unknown": Unknown("x")}
    board.set_capacity(name, readings[card.reading])
    board.set_resource_enabled(name, card.switch)
    board.set_pressure(name, card.pressure)
    if card.ended is not None:
        board.work_ended(name, Instant(now - card.ended))
    if card.let_go is not None:
        board.let_go([name], Instant(now - card.let_go))


Answer = tuple[Reason | None, int, int, dict[str, object]]


def oracle(world: World) -> Answer:
    """Reason, hint, step and the measured part of the detail; reason None: admitted, credit in the detail."""
    for refused in [_lending_oracle(world), _owner_oracle(world), *_card_oracles(world)]:
        if refused is not None:
            return refused
    return _footprint_oracle(world)


def _lending_oracle(world: World) -> Answer | None:
    ends: list[float] = []
    if not world.spec_on or not world.schedule or world.local == "forever":
        ends.append(10**9)
    if world.cluster is not None and world.cluster > 0:
        ends.append(world.cluster)
    if isinstance(world.local, float) and world.local > 0:
        ends.append(world.local)
    if not ends:
        return None
    hint = 1
    while hint < 300 and hint < max(ends):
        hint += 1
    return Reason.LENDING_DISABLED, hint, 1, {}


def _owner_oracle(world: World) -> Answer | None:
    answers: dict[tuple[int, int], bool] = {
        (2, 5): world.presence == "never"
        or (
            world.scope is OwnerScope.HOST
            and (world.presence == "stale" or (world.presence != "unknown" and world.presence_age > 15))
        ),
        (3, 30): world.scope is OwnerScope.HOST and world.presence in {"unknown", "unclear"},
        (4, 120): world.scope is OwnerScope.HOST and (world.vetoed or world.presence == "present"),
    }
    for (step, hint), applies in answers.items():
        if applies:
            return Reason.OWNER_ACTIVE, hint, step, {}
    return None


def _card_oracles(world: World) -> list[Answer]:
    answers: list[Answer] = []
    for name in world.requires:
        card = world.cards[name]
        where: dict[str, object] = {"resource": name}
        if not card.switch or not card.spec_enabled:
            answers.append((Reason.RESOURCE_DISABLED, 300, 5, where))
        if card.reading in {"unknown", "stale"} or card.age > 15:
            answers.append((Reason.RESOURCE_UNMEASURED, 30, 5, where))
        elif card.kind is ResourceType.CPU:
            if card.max_percent is not None and card.percent > card.max_percent:
                measured = {"utilizationPercent": card.percent}
                answers.append((Reason.INSUFFICIENT_CAPACITY, 30, 5, where | measured))
        elif card.free < card.min_free:
            numbers = {"freeMiB": card.free, "needMiB": card.min_free}
            answers.append((Reason.INSUFFICIENT_CAPACITY, 30, 5, where | numbers))
        if card.pressure in {Pressure.UNKNOWN, Pressure.CALIBRATING}:
            answers.append((Reason.RESOURCE_UNMEASURED, 30, 5, where))
        if card.pressure is Pressure.ENGAGED:
            answers.append((Reason.RESOURCE_PRESSURED, 30, 5, where))
    return answers


def ask_of(world: World) -> Ask:
    """What the request of this host asks."""
    return Ask("llm", world.model, world.prior, None if world.held is None else world.held.ask)


def _held_oracle(world: World) -> Judged:
    held = world.held
    if held is None:
        kind, age, idle = world.residency or (None, 0.0, True)
        held = Held(Dialect.LLAMACPP, kind, age, idle)
    on_route = [world.cards[name] for name in world.requires]
    gpus = [name for name in world.requires if world.cards[name].kind in GPU]
    return judge(held, world.model, gpus, [ago for card in on_route for ago in (card.ended, card.let_go)])


def _footprint_oracle(world: World) -> Answer:
    key = world.model if world.model in world.footprints else None
    full, resident = world.footprints[key]
    held = _held_oracle(world)
    again = {"again": held.only_old}
    if held.off_card is not None:
        where = {"resource": held.off_card, "model": world.model}
        return Reason.UPSTREAM_NOT_ON_GPU, 30, 6, where | again
    for name in world.requires:
        card = world.cards[name]
        if card.kind is ResourceType.CPU:
            continue
        if held.credited:
            need = min(resident, full)
        else:
            need = full
            if world.prior and world.prior.get(name, 0) > need:
                need = world.prior[name]
        free = card.free + (held.added if card.kind in GPU else 0)
        if free < need:
            numbers = {"resource": name, "freeMiB": free, "needMiB": need}
            return Reason.INSUFFICIENT_CAPACITY, 30, 6, numbers | again
    return None, 0, 0, {"credited": held.credited}
