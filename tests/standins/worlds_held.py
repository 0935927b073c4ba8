"""What the upstream of a random host shows of its models, as plain values, and a dumb judge of its credit.

The judge shares no code with the gate: it is written from the text of the rule, one sentence after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vacancy_agent.core.contexts import Kind
from vacancy_agent.core.facts import Instant, MiB, Ready, Stale, Unknown
from vacancy_agent.core.settings import Dialect
from vacancy_agent.core.shown import ModelShown, ModelsShown, PoolShown, SlotsShown
from vacancy_dialects import RunnerAsk

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from vacancy_agent.core.board import Board
    from vacancy_agent.core.shown import Shown

AGES = [0.0, 3.9, 4.0, 4.1, 14.0]
CONTEXTS = [2048, 4096, 8192]


@dataclass
class Row:
    """One model that an Ollama lists."""

    name: str
    digest: str
    context: int | None
    left: float | None  # seconds from now until it goes
    spilled: bool


@dataclass
class Held:
    """What is shown, what is asked for, and what was learned before."""

    dialect: Dialect = Dialect.LLAMACPP
    kind: str | None = None  # ready | stale | unknown; None: never observed
    age: float = 0.0
    idle: bool = True
    pool: int | None = None
    rows: list[Row] = field(default_factory=list)
    runner: tuple[bool, int | None, bool] | None = None  # under /v1, num_ctx, other options
    learned: dict[tuple[str, bool, int | None], int] = field(default_factory=dict)
    modelfiles: dict[str, int | None] = field(default_factory=dict)

    @property
    def ask(self) -> RunnerAsk | None:
        return None if self.runner is None else RunnerAsk(*self.runner)


def throw_held(dice: Random, model: str | None) -> Held:
    """Most of it is near a credit, and one thing or another is wrong."""
    dialect = dice.choice([Dialect.OLLAMA] * 6 + [Dialect.LLAMACPP, Dialect.COMFYUI, Dialect.OPENAI])
    held = Held(
        dialect,
        dice.choice(["ready"] * 7 + ["stale", "unknown", None]),
        dice.choice(AGES[:3] * 3 + AGES),
        dice.random() < 0.8,
        dice.choice([None, 0, 1, 600, 9000]),
    )
    if dialect is not Dialect.OLLAMA:
        return held
    names = [model or "small"] * 5 + ["small", "large"]
    held.rows = [
        Row(
            dice.choice(names),
            dice.choice(["d", "d", "e"]),
            dice.choice(CONTEXTS * 4 + [None]),
            dice.choice([29.9, 30.0, 300.0, 300.0, 300.0, None, 0.0, -1.0]),
            dice.random() < 0.1,
        )
        for _ in range(dice.choice([0, 1, 1, 1, 1, 2]))
    ]
    held.runner = dice.choice(
        [None]
        + [(False, number, False) for number in [*CONTEXTS, None]] * 3
        + [(True, None, False), (True, 4096, False), (False, 4096, True)]
    )
    for _ in range(dice.choice([0, 0, 1, 2, 3])):
        kind = (dice.choice("de"), dice.random() < 0.3, dice.choice([*CONTEXTS, None]))
        held.learned[kind[0], kind[1], None if kind[1] else kind[2]] = dice.choice([*CONTEXTS, 3000])
    if dice.random() < 0.5:
        held.modelfiles["d"] = dice.choice([*CONTEXTS, None])
    return held


def show(board: Board, held: Held, now: float) -> None:
    """Put it on the board."""
    board.contexts.load((Kind(*kind), context) for kind, context in held.learned.items())
    for digest, num_ctx in held.modelfiles.items():
        board.contexts.modelfile(digest, num_ctx)
    if held.kind is None or held.dialect is Dialect.OPENAI:
        return
    at, shown = Instant(now - held.age), _shown(held, now)
    readings = {"ready": Ready(shown, at), "stale": Stale(shown, at, "x"), "unknown": Unknown("x")}
    board.set_residency("llm", readings[held.kind])


def _shown(held: Held, now: float) -> Shown:
    if held.dialect is Dialect.OLLAMA:
        return ModelsShown(
            tuple(
                ModelShown(
                    row.name,
                    row.digest,
                    row.context,
                    None if row.left is None else Instant(now + row.left),
                    100,
                    99 if row.spilled else 100,
                )
                for row in held.rows
            )
        )
    if held.dialect is Dialect.COMFYUI:
        return PoolShown(None if held.pool is None else MiB(held.pool))
    return SlotsShown(held.idle)


@dataclass
class Judged:
    """What the dumb judge says."""

    credited: bool = False
    added: int = 0
    only_old: bool = False
    off_card: str | None = None


def judge(held: Held, model: str | None, cards: list[str], disturbed: Iterable[float | None]) -> Judged:
    """`cards`: the GPUs on the route, in order; `disturbed`: how long ago jobs and unloads ended on it."""
    fresh = held.age <= 4 and all(ago is None or ago > held.age for ago in disturbed)
    judged = Judged()
    if held.dialect is Dialect.OLLAMA and held.kind == "ready" and cards:
        for row in held.rows:
            if row.name == model and row.spilled and (row.left is None or row.left > 0):
                return Judged(off_card=cards[0], only_old=not fresh)
    if held.dialect is Dialect.OPENAI:
        return judged
    if held.dialect is Dialect.OLLAMA and (model is None or held.runner is None or held.runner[2]):
        return judged
    if held.kind != "ready" or not fresh:
        judged.only_old = True
    elif held.dialect is Dialect.LLAMACPP:
        judged.credited = held.idle
    elif held.dialect is Dialect.COMFYUI:
        judged.added = held.pool or 0 if len(cards) == 1 else 0
    else:
        judged.credited = _listed(held, model)
    return judged


def _listed(held: Held, model: str | None) -> bool:
    rows = [row for row in held.rows if row.name == model]
    if len(rows) != 1 or rows[0].context is None or rows[0].left is None or rows[0].left < 30:
        return False
    assert held.runner is not None
    (row,), (v1, num_ctx, _) = rows, held.runner
    asked = None if v1 else num_ctx
    if (row.digest, v1, asked) in held.learned:
        return held.learned[row.digest, v1, asked] == row.context
    for (digest, _, number), context in held.learned.items():
        if digest == row.digest and number is not None and context in [number * n for n in range(2, 9)]:
            return False
    if asked is not None:
        return asked == row.context
    return held.modelfiles.get(row.digest) == row.context
