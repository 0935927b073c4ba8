"""Which context an Ollama request is known to reuse: by its own words, by its Modelfile, or by what was seen.

Invariant: a context counts as known for a kind of request only when the newest request of that kind that was
watched to its end left the model listed with exactly it. Ollama loads a model anew when another context is
asked for, answers an unset one out of its own defaults, and shows the contexts of parallel slots together, so
none of these can be worked out. The failure this prevents: a request is credited for a model that it makes
Ollama load a second time, on a card without room. Rejected: reading the server's defaults, which no route
tells.

Usage: `began`, `ended` with every request, `observed` with every list of models; `reused` in the gate. What
was learned is kept by digest (`items`, `load`), so that another model of the same name starts anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vacancy_agent.core.facts import Instant
    from vacancy_agent.core.shown import ModelShown, ModelsShown
    from vacancy_dialects import RunnerAsk

LEAST = 2048
"""Tokens; Ollama gives no model less than 4 and one that sees pictures no less than this, whatever was asked
for (its scheduler's GetRunner, 0.17.4): a larger one than asked for shows parallel slots only above it."""
MOST = 1024
"""Contexts come from borrowers: past this many, what was learned first is forgotten."""


class Kind(NamedTuple):
    """Requests that Ollama serves with one context."""

    digest: str
    v1: bool
    num_ctx: int | None
    """None: not set by the request."""


class _Asked(NamedTuple):
    upstream: str
    model: str


class _Said(NamedTuple):
    v1: bool
    num_ctx: int | None


@dataclass(slots=True)
class _Watch:
    """Requests for one model of one upstream."""

    under_way: dict[_Said | None, int]
    """None: with other runner options, which teach nothing."""
    last: tuple[_Said, Instant] | None = None
    """The kind that ended last, while no request of another kind began since, and when."""


class Contexts:
    """What is known of one host's models."""

    def __init__(self) -> None:
        self._learned: dict[Kind, int] = {}
        self._parallel: dict[str, int] = {}
        """By digest, how many learned contexts show parallel slots."""
        self._modelfiles: dict[str, int | None] = {}
        self._watches: dict[_Asked, _Watch] = {}
        self.version = 0
        """Rises with everything learned."""

    def reused(self, resident: ModelShown, runner: RunnerAsk) -> str | None:
        """How it is known that the request reuses the resident context; None: it is not."""
        context = resident.context
        if not context:
            return None
        learned = self._learned.get(Kind(resident.digest, *_said(runner)))
        if learned is not None:
            return "seen with a request of this kind" if learned == context else None
        if self._parallel.get(resident.digest):
            return None  # what is shown stands for several slots
        if not runner.v1 and runner.num_ctx is not None:
            return "the request asks for it" if runner.num_ctx == context else None
        return "its Modelfile sets it" if self._modelfiles.get(resident.digest) == context else None

    def began(self, upstream: str, model: str, runner: RunnerAsk) -> None:
        """A request was forwarded."""
        said = None if runner.other_options else _said(runner)
        watch = self._watches.setdefault(_Asked(upstream, model), _Watch({}))
        watch.under_way[said] = watch.under_way.get(said, 0) + 1
        if watch.last is not None and watch.last[0] != said:
            watch.last = None

    def ended(self, upstream: str, model: str, runner: RunnerAsk, now: Instant, *, served: bool) -> None:
        """Its exchange is over. `served`: with a complete, successful reply."""
        asked = _Asked(upstream, model)
        watch = self._watches.get(asked)
        if watch is None:
            return
        said = None if runner.other_options else _said(runner)
        left = watch.under_way.pop(said, 0) - 1
        if left > 0:
            watch.under_way[said] = left
        alone = not watch.under_way.keys() - {said}
        watch.last = (said, now) if served and said is not None and alone else None
        if not watch.under_way and watch.last is None:
            del self._watches[asked]

    def observed(self, upstream: str, shown: ModelsShown, at: Instant) -> None:
        """A list of models that was asked for at `at`."""
        for asked, watch in list(self._watches.items()):
            if asked.upstream != upstream or watch.last is None or at < watch.last[1]:
                continue
            rows = shown.named(asked.model)
            if len(rows) == 1 and rows[0].context:
                self._learn(Kind(rows[0].digest, *watch.last[0]), rows[0].context)
            watch.last = None
            if not watch.under_way:
                del self._watches[asked]

    def unread(self, shown: ModelsShown) -> Iterator[ModelShown]:
        """The models whose Modelfile is not known."""
        return (model for model in shown.models if model.digest not in self._modelfiles)

    def modelfile(self, digest: str, num_ctx: int | None) -> None:
        """What a model's Modelfile sets."""
        self._modelfiles[digest] = num_ctx
        if len(self._modelfiles) > MOST:
            del self._modelfiles[next(iter(self._modelfiles))]

    def items(self) -> Iterator[tuple[Kind, int]]:
        """Everything learned, to be kept; oldest first."""
        return iter(list(self._learned.items()))

    def load(self, kept: Iterable[tuple[Kind, int]]) -> None:
        """Take over what was kept."""
        for kind, context in kept:
            self._learn(kind, context)

    def _learn(self, kind: Kind, context: int) -> None:
        if self._learned.get(kind) == context:
            return
        self._forget(kind)
        self._learned[kind] = context
        self._count(kind, context, 1)
        if len(self._learned) > MOST:
            self._forget(next(iter(self._learned)))
        self.version += 1

    def _forget(self, kind: Kind) -> None:
        context = self._learned.pop(kind, None)
        if context is not None:
            self._count(kind, context, -1)

    def _count(self, kind: Kind, context: int, more: int) -> None:
        asked = kind.num_ctx
        if asked and context > max(asked, LEAST) and context % asked == 0:
            self._parallel[kind.digest] = self._parallel.get(kind.digest, 0) + more


def _said(runner: RunnerAsk) -> _Said:
    """Under /v1 no option is read."""
    return _Said(runner.v1, None if runner.v1 else runner.num_ctx)
