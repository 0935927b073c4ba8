"""Asks a ComfyUI to let go of its models, and looks whether it did.

Invariant: its yes is no showing. `/free` sets two flags, which are looked at when no prompt runs; that memory
was let go is only seen in `/system_stats`. A server whose memory is not shown (no `cuda` device) is asked all
the same, and never believed.

Somebody else's prompt in the queue means that the owner uses the server: the unload is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vacancy_agent.upstreams.ask import AskError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from vacancy_agent.upstreams.comfyui import ComfyUi

    Again = Callable[[str], Awaitable[bool]]
    """Told what the last look showed, for people; returns when it is time for another, False for none."""

KEPT = 256 << 20
"""Bytes that an allocator may keep after everything was unloaded."""


@dataclass(frozen=True, slots=True)
class Freed:
    """It showed that it let go, or that it holds nothing. Sizes in bytes."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """It was not asked."""

    why: str


@dataclass(frozen=True, slots=True)
class NotShown:
    """It was asked, or could not be, and did not show that it let go."""

    why: str


async def free(
    server: ComfyUi, ours: Callable[[str], bool], again: Again, *, unconfirmed: bool = False
) -> Freed | Skipped | NotShown:
    """Unload everything, unless somebody else uses the server.

    Args:
        server: is asked.
        ours: whether a prompt of the queue was admitted here, through whichever upstream of the server.
        again: when to look again whether it let go.
        unconfirmed: a submission may be in the queue under an id that nobody knows, so nothing there can be
            called somebody else's.
    """
    foreign = None if unconfirmed else await _foreign(server, ours)
    if foreign is not None:
        return Skipped(f"prompt {foreign} in its queue is not a borrower's")
    before = await _held(server)
    while True:
        try:
            await server.free()
            break
        except AskError as error:
            if not await again(f"it cannot be asked to unload: {error}"):
                return NotShown(f"it cannot be asked to unload: {error}")
    return await _shown(server, before, again)


async def _shown(server: ComfyUi, before: int | None, again: Again) -> Freed | NotShown:
    while True:
        after = await _held(server)
        if after is not None:
            start = before = after if before is None else before
            if after <= max(KEPT, start // 10):
                return Freed(start, after)
        why = "it does not show its memory" if after is None else f"it still holds {after >> 20} MiB"
        if not await again(why):
            return NotShown(why)


async def _foreign(server: ComfyUi, ours: Callable[[str], bool]) -> str | None:
    try:
        return await server.foreign(ours)
    except AskError:
        return None


async def _held(server: ComfyUi) -> int | None:
    """What its allocators hold, in bytes; None: it does not show that."""
    try:
        devices = await server.device_memory()
    except AskError:
        return None
    return sum(device.torch_vram_total for device in devices) if devices else None
