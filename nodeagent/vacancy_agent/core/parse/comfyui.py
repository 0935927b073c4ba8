"""What a ComfyUI server says of itself and of one prompt.

Invariant: an answer that cannot be read is an error or `UNTOLD`, never a plausible value. A memory figure of
a device that is no `cuda` one is about the whole machine, so callers ask for `SystemStats.cuda`.

Source: recorded answers of 0.3.64 and 0.28.1; the releases named below, from its sources.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from vacancy_agent.core.parse.document import json_object

MAX_ID = 256
"""Bytes of an id in the queue; servers of today use UUIDs, older ones took what they were sent."""
CUDA = "cuda"

_VERSION = re.compile(r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?", re.ASCII)
_JOB = re.compile(rb'\s*\{\s*"id"\s*:\s*"[^"]*"\s*,\s*"status"\s*:\s*"([a-z_]+)"')


class ComfyAnswerError(Exception):
    """An answer that is not what ComfyUI says; the message tells what is wrong with it."""


class Release(NamedTuple):
    """A release of ComfyUI, comparable."""

    major: int
    minor: int
    patch: int = 0


KEEPS_PROMPT_IDS = Release(0, 3, 45)
"""From here on a submission's own `prompt_id` is used."""
INTERRUPTS_ONE = Release(0, 3, 57)
"""From here on `/interrupt` takes a prompt_id; what runs next can still be hit in its place."""
HAS_JOBS = Release(0, 6, 0)
"""From here on there is `/api/jobs/{id}`."""
CANCELS_ATOMICALLY = Release(0, 26, 0)
"""From here on there is `POST /api/jobs/{id}/cancel`, which stops that prompt or nothing."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device that the server computes on; all sizes in bytes."""

    type: str
    index: int | None
    torch_vram_total: int
    """What its allocator holds and reuses for the next job. On `cpu` and `mps`: all memory there is."""
    torch_vram_free: int


@dataclass(frozen=True, slots=True)
class SystemStats:
    """GET /system_stats."""

    release: Release | None
    """None: it does not say, or in a way of its own."""
    devices: tuple[Device, ...]

    @property
    def cuda(self) -> tuple[Device, ...]:
        """The devices whose figures are about their own allocator alone."""
        return tuple(device for device in self.devices if device.type == CUDA)


class PromptState(StrEnum):
    """Where one prompt is, as the cheap questions tell it."""

    THERE = "there"
    """It waits or runs."""
    ENDED = "ended"
    UNTOLD = "untold"
    """Unknown to what was asked: it may wait, run, have been deleted, or never have been there."""


def release_of(text: object) -> Release | None:
    """The release that a version string names; None: none that can be compared."""
    found = _VERSION.match(text) if isinstance(text, str) else None
    return Release(*(int(part or 0) for part in found.groups())) if found else None


def parse_system_stats(body: bytes) -> SystemStats:
    """Read GET /system_stats.

    Raises:
        ComfyAnswerError: it is not what a ComfyUI says.
    """
    document = json_object(body, "/system_stats", ComfyAnswerError)
    system, devices = document.get("system"), document.get("devices")
    if not isinstance(system, dict) or not isinstance(devices, list):
        raise ComfyAnswerError("/system_stats has no system or no devices")
    return SystemStats(release_of(system.get("comfyui_version")), tuple(map(_device, devices)))


def parse_remaining(body: bytes) -> int:
    """How many prompts wait or run: GET /prompt.

    Raises:
        ComfyAnswerError: it is not what a ComfyUI says.
    """
    info = json_object(body, "/prompt", ComfyAnswerError).get("exec_info")
    remaining = info.get("queue_remaining") if isinstance(info, dict) else None
    if not isinstance(remaining, int) or isinstance(remaining, bool) or remaining < 0:
        raise ComfyAnswerError("/prompt tells no queue_remaining")
    return remaining


def state_in_history(prompt_id: str, start: bytes) -> PromptState:
    """What GET /history/{id} tells; `start` is how its body begins. `{}`: unknown, or not ended yet."""
    shown = start.lstrip().removeprefix(b"{").lstrip()
    return PromptState.ENDED if shown.startswith(json.dumps(prompt_id).encode()) else PromptState.UNTOLD


def state_of_job(start: bytes) -> PromptState:
    """What GET /api/jobs/{id} tells; `start` is how its body begins."""
    found = _JOB.match(start)
    if found is None:
        return PromptState.UNTOLD
    if found[1] in {b"pending", b"in_progress"}:
        return PromptState.THERE
    return PromptState.ENDED if found[1] in {b"completed", b"failed", b"cancelled"} else PromptState.UNTOLD


def parse_submitted(body: bytes) -> str | None:
    """The id that a successful answer to POST /prompt gave; None: it cannot be told."""
    try:
        prompt_id = json_object(body, "/prompt", ComfyAnswerError).get("prompt_id")
    except ComfyAnswerError:
        return None
    return prompt_id if isinstance(prompt_id, str) and 0 < len(prompt_id) <= MAX_ID else None


def _device(found: object) -> Device:
    if not isinstance(found, dict):
        raise ComfyAnswerError("/system_stats has a device that is none")
    kind, index = found.get("type"), found.get("index")
    if not isinstance(kind, str):
        raise ComfyAnswerError("/system_stats has a device without a type")
    return Device(
        kind,
        index if isinstance(index, int) else None,
        _bytes(found.get("torch_vram_total")),
        _bytes(found.get("torch_vram_free")),
    )


def _bytes(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ComfyAnswerError("/system_stats has a size that is none")
    return value
