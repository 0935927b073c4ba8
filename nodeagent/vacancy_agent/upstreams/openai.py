"""What an OpenAI-compatible server shows of its work: vLLM's gauges, where it has them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vacancy_agent.upstreams.ask import AskError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vacancy_agent.upstreams.ask import ServerClient

RUNNING, WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"
_OK = 200


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests in the server, over all its engines."""

    running: float
    waiting: float

    @property
    def none(self) -> bool:
        """The server has nothing to do."""
        return self.running == 0 and self.waiting == 0


@dataclass(frozen=True, slots=True)
class NoMetrics:
    """The server does not have these gauges, or does not show them to us."""


async def ask_requests(server: ServerClient) -> Requests | NoMetrics:
    """Read `/metrics`.

    Raises:
        AskError: the server gave no answer.
    """
    answer = await server.get("/metrics")
    if answer.status != _OK:
        return NoMetrics()
    return requests_in(answer.body.decode("utf-8", "replace"))


def requests_in(text: str) -> Requests | NoMetrics:
    """The sums over every series of both gauges. One of them missing or unreadable proves nothing.

    Raises:
        AskError: a value is no number.
    """
    running, waiting = list(_values(text, RUNNING)), list(_values(text, WAITING))
    if not running or not waiting:
        return NoMetrics()
    return Requests(sum(running), sum(waiting))


def _values(text: str, name: str) -> Iterator[float]:
    for line in text.splitlines():
        rest = line.removeprefix(name)
        if rest == line or not rest.startswith(("{", " ")):
            continue
        numbers = rest.rpartition("}")[2].split()
        try:
            value = float(numbers[0])
        except (ValueError, IndexError) as error:
            raise AskError(f"its metric {name} is no number") from error
        if math.isnan(value) or value < 0:
            raise AskError(f"its metric {name} is {value}")
        yield value
