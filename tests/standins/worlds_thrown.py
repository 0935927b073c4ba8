"""Random hosts by dice: hundreds of times cheaper than drawn ones, so that a hundred thousand are judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from standins.worlds import AGES, FREES, MODELS, Card, World
from standins.worlds_held import throw_held
from vacancy_agent.core.board import Pressure
from vacancy_agent.core.facts import MiB
from vacancy_agent.core.settings import OwnerScope, ResourceType

if TYPE_CHECKING:
    from random import Random

KINDS = {"gpu": ResourceType.NVIDIA, "ram": ResourceType.MEMORY, "cpu": ResourceType.CPU}
SIZES = [(0, 0), (500, 0), (8000, 500), (8000, 0), (500, 8000), (19_000, 300)]
PRESENCE = ["absent"] * 8 + ["unsupported"] * 2 + ["never", "unknown", "stale", "unclear", "present"]


def throw(dice: Random) -> World:
    """One host. Two of three get past step 4, one of two past step 5."""
    pick = dice.choice
    far = pick([0, 4, 5, 5, 5, 5])
    cards = {name: _card(dice, kind, well=far == 5) for name, kind in KINDS.items()}
    if pick([True, False, False]):
        cards["ram"].kind = ResourceType.AMD
    order = list(cards)
    dice.shuffle(order)
    model = pick(MODELS)
    well = far >= 4
    return World(
        spec_on=well or dice.random() < 0.9,
        cluster=None if well else pick([None] * 6 + [-5.0, 0.0, 7.5, 400.0]),
        local=None if well else pick([None] * 6 + [-5.0, 7.5, 400.0, "forever"]),
        schedule=well or dice.random() < 0.9,
        presence="absent" if well else pick(PRESENCE),
        presence_age=3.0 if well else pick(AGES[:5] * 3 + AGES),
        vetoed=not well and dice.random() < 0.15,
        scope=pick(list(OwnerScope)),
        cards=cards,
        requires=tuple(order[: dice.randint(1, 3)]),
        footprints={None: pick(SIZES), "small": pick(SIZES), "large": pick(SIZES)},
        residency=None,
        model=model,
        prior=pick([None, None, {}, {"gpu": MiB(1)}, {"gpu": MiB(9000), "ram": MiB(1)}]),
        held=throw_held(dice, model),
    )


def _card(dice: Random, kind: ResourceType, *, well: bool) -> Card:
    pick = dice.choice
    return Card(
        kind,
        well or dice.random() < 0.8,
        well or dice.random() < 0.8,
        "ready" if well else pick(["ready"] * 6 + ["unknown", "stale"]),
        3.0 if well else pick(AGES[:5] * 3 + AGES),
        pick(FREES),
        pick([0.0, 50.0, 50.5, 100.0]),
        0 if well else pick([0, 0, 500]),
        None if well else pick([None, 50.0, 100.0]),
        Pressure.CLEAR if well else pick([Pressure.OFF] * 4 + list(Pressure)),
        pick([None, None, None, *AGES]),
        pick([None, None, None, *AGES]),
    )
