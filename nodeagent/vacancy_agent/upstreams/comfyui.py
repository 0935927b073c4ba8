"""What we ask of a ComfyUI server.

Invariant: what ends a prompt is its absence from the whole queue, as one answer showed it, never a state that
the server remembers for its id: ids can be used twice, and the history of the first would end the second.
So the cheap questions (how many are left, the history, the job) only decide whether the queue is worth
reading; it holds everybody's graphs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from vacancy_agent.core.parse.comfyui import (
    CANCELS_ATOMICALLY,
    HAS_JOBS,
    INTERRUPTS_ONE,
    KEEPS_PROMPT_IDS,
    ComfyAnswerError,
    PromptState,
    parse_remaining,
    parse_system_stats,
    state_in_history,
    state_of_job,
)
from vacancy_agent.core.parse.comfyui_queue import QueueScan
from vacancy_agent.upstreams.ask import AskError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from vacancy_agent.core.parse.comfyui import Device, Release, SystemStats
    from vacancy_agent.core.parse.comfyui_queue import Queued
    from vacancy_agent.upstreams.ask import Answer, ServerClient

T = TypeVar("T")
MAX_QUEUE = 16 << 20
"""Bytes of a queue that are read."""
_ENOUGH = 512
"""Bytes in which a history or a job says what it is about."""
_OK = 200


@dataclass(frozen=True, slots=True)
class Queue:
    """The ids in the queue, at one moment."""

    running: frozenset[str]
    pending: frozenset[str]

    def __contains__(self, prompt_id: str) -> bool:
        """Whether a prompt waits or runs."""
        return prompt_id in self.running or prompt_id in self.pending

    @property
    def ids(self) -> frozenset[str]:
        """All of them."""
        return self.running | self.pending


class ComfyUi:
    """One server. Which questions it understands follows from its release, which is asked once."""

    def __init__(self, server: ServerClient) -> None:
        """Nothing is asked before the first call."""
        self._server = server
        self._release: Release | None = None
        self._known = False

    async def stats(self) -> SystemStats:
        """Release and devices.

        Raises:
            AskError: it does not tell, like for every question here.
        """
        stats = _read(parse_system_stats, await self._server.get("/system_stats"))
        self._release, self._known = stats.release, True
        return stats

    async def device_memory(self) -> tuple[Device, ...]:
        """What its allocator holds on each `cuda` device; other devices show the whole machine's memory."""
        return (await self.stats()).cuda

    async def release(self) -> Release | None:
        """The release, as it was told last; None: it tells none."""
        return self._release if self._known else (await self.stats()).release

    async def keeps_ids(self) -> bool:
        """Whether a submission's own prompt id is the server's."""
        return _at_least(await self.release(), KEEPS_PROMPT_IDS)

    async def has_jobs(self) -> bool:
        """Whether it tells of a prompt that waits or runs; otherwise it only tells of one that has ended."""
        return _at_least(await self.release(), HAS_JOBS)

    async def remaining(self) -> int:
        """How many prompts wait or run."""
        return _read(parse_remaining, await self._server.get("/prompt"))

    async def state(self, prompt_id: str) -> PromptState:
        """Where a prompt is, as far as a cheap question tells."""
        if await self.has_jobs():
            return state_of_job(await self._start_of(f"/api/jobs/{prompt_id}"))
        return state_in_history(prompt_id, await self._start_of(f"/history/{prompt_id}"))

    async def queue(self) -> Queue:
        """What waits and what runs, read to the end."""
        found: list[Queued] = []
        await self._scan(found, lambda _entry: False)
        return Queue(
            frozenset(entry.prompt_id for entry in found if entry.running),
            frozenset(entry.prompt_id for entry in found if not entry.running),
        )

    async def foreign(self, ours: Callable[[str], bool]) -> str | None:
        """The first prompt in the queue that is not ours; the rest is not read. None: there is none."""
        found: list[Queued] = []
        await self._scan(found, lambda entry: not ours(entry.prompt_id))
        return next((entry.prompt_id for entry in found if not ours(entry.prompt_id)), None)

    async def delete(self, prompt_ids: Iterable[str]) -> None:
        """Take prompts out of what waits. It says nothing about what was there (run)."""
        _agreed(await self._server.post("/queue", {"delete": list(prompt_ids)}))

    async def stop(self, prompt_id: str, *, alone: bool) -> bool:
        """Stop a prompt that runs, by the narrowest request that the release has.

        Args:
            prompt_id: seen running just now.
            alone: nobody else's prompt is in the queue.

        Returns:
            False: this release can only stop whatever runs, which could be somebody else's by then.
        """
        release = await self.release()
        if _at_least(release, CANCELS_ATOMICALLY):
            _agreed(await self._server.request("POST", f"/api/jobs/{prompt_id}/cancel"))
        elif _at_least(release, INTERRUPTS_ONE):
            _agreed(await self._server.post("/interrupt", {"prompt_id": prompt_id}))
        elif alone:
            _agreed(await self._server.request("POST", "/interrupt"))
        else:
            return False
        return True

    async def free(self) -> None:
        """Ask it to unload. It only notes that, and does it when nothing runs (run)."""
        _agreed(await self._server.post("/free", {"unload_models": True, "free_memory": True}))

    def forget(self) -> None:
        """Ask for the release anew: the server may be another one now."""
        self._known = False

    async def _scan(self, found: list[Queued], last: Callable[[Queued], bool]) -> None:
        scan, stopped = QueueScan(), False

        def take(piece: bytes) -> bool:
            nonlocal stopped
            for entry in scan.feed(piece):
                found.append(entry)
                stopped = stopped or last(entry)
            return stopped

        try:
            status = await self._server.read("/queue", take, most=MAX_QUEUE)
            if status != _OK:
                raise AskError(f"answered {status} to GET /queue")
            if not stopped:
                scan.finish()
        except ComfyAnswerError as error:
            raise AskError(str(error)) from error

    async def _start_of(self, path: str) -> bytes:
        """How the answer to GET begins, which may hold a whole graph; empty unless it is a 200."""
        start = bytearray()

        def take(piece: bytes) -> bool:
            start.extend(piece[:_ENOUGH])
            return len(start) >= _ENOUGH

        await self._server.read(path, take, most=MAX_QUEUE)
        return bytes(start)


def _at_least(release: Release | None, wanted: Release) -> bool:
    return release is not None and release >= wanted


def _agreed(answer: Answer) -> None:
    if answer.status != _OK:
        raise AskError(f"answered {answer.status}")


def _read(parse: Callable[[bytes], T], answer: Answer) -> T:
    _agreed(answer)
    try:
        return parse(answer.body)
    except ComfyAnswerError as error:
        raise AskError(str(error)) from error
