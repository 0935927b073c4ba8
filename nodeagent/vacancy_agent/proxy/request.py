"""One borrower's request as the proxy knows it: the application's slot of an exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vacancy_agent.core.facts import WallTime
    from vacancy_agent.core.job import Job
    from vacancy_agent.proxy.plan import Plan
    from vacancy_agent.proxy.prompts import Prompt
    from vacancy_dialects import EndWatch, RunnerAsk
    from vacancy_http import Exchange


class Request:
    """Who asks for what, and, once admitted, which job it is.

    Attributes:
        exchange: the engine's side of it.
        plan: what its head decided.
        job: the ledger's entry while it is forwarded; None before, and for all that is no work.
        slot: the job's slot in the hold journal.
        started: when it was admitted.
        plain: it came the short way, and its complete reply is all the proof there is to look for.
        watch: looks for the end marker of an event stream; None where complete framing is proof enough.
        prompt: the prompt of an admitted ComfyUI submission.
        runner: what an admitted Ollama request says about its runner.
        looked: it has waited for a look at what the upstream holds already, and does not a second time.
        waited: it has waited for a capacity sample already, and does not a second time.
    """

    __slots__ = (
        "exchange",
        "job",
        "looked",
        "plain",
        "plan",
        "prompt",
        "runner",
        "slot",
        "started",
        "waited",
        "watch",
    )

    def __init__(
        self,
        exchange: Exchange,
        plan: Plan,
        job: Job | None = None,
        slot: int = -1,
        started: WallTime | None = None,
        plain: bool = False,
    ) -> None:
        self.exchange = exchange
        self.plan = plan
        self.job = job
        self.slot = slot
        self.started = started
        self.plain = plain
        self.watch: EndWatch | None = None
        self.prompt: Prompt | None = None
        self.runner: RunnerAsk | None = None
        self.looked = False
        self.waited = False
