"""Who has a GPU open, and what each uses of it, out of /proc.

Invariant: a list from which somebody may be missing is no list. As a user who may not look at the descriptors
of all processes, the agent would take a game of somebody else for no load at all, so it says that it cannot
tell. Rejected: to count what can be seen.

It blocks, for about 3 ms per hundred processes: run it beside the loop.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vacancy_agent.core.parse.fdinfo import FdinfoError, load_of, parse_fdinfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vacancy_agent.core.parse.fdinfo import DrmClient

PROC = Path("/proc")
_DEVICES = "/dev/dri/"


class UnseenProcessesError(Exception):
    """Some processes cannot be looked at: their load would be missing."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A client of the device, and the processes that hold it."""

    client: DrmClient
    pids: frozenset[int]


def holders(pci: str, proc: Path = PROC) -> tuple[Holder, ...]:
    """Everybody who has the GPU at this PCI address open.

    Raises:
        UnseenProcessesError: the agent may not look at every process.
        FdinfoError: a driver's counters cannot be read.
        OSError: /proc cannot be listed.
    """
    clients: dict[tuple[str, int], DrmClient] = {}
    pids: dict[tuple[str, int], set[int]] = {}
    seen = list(_processes(proc))
    # Every table has a first process; a /proc without it leaves out what is other users' (hidepid).
    hidden = 0 if 1 in seen else 1
    for pid in seen:
        try:
            for client in _clients(f"{proc}/{pid}"):
                if client.pci == pci:
                    clients[client.key] = client
                    pids.setdefault(client.key, set()).add(pid)
        except PermissionError:
            hidden += 1
    if hidden:
        raise UnseenProcessesError(
            f"at least {hidden} processes cannot be looked at: run the agent as root, or with CAP_SYS_PTRACE"
        )
    return tuple(Holder(client, frozenset(pids[key])) for key, client in clients.items())


def loads(
    before: Mapping[tuple[str, int], DrmClient], after: DrmClient, elapsed_s: float
) -> dict[str, float]:
    """Percent by engine that a client used since the look `before`; engines it did not use are left out."""
    known = before.get(after.key)
    used = {
        name: load_of(known.engines.get(name) if known else None, engine, elapsed_s * 1e9)
        for name, engine in after.engines.items()
    }
    return {name: load for name, load in used.items() if load > 0.0}


def _processes(proc: Path) -> Iterator[int]:
    with os.scandir(proc) as entries:
        for entry in entries:
            if entry.name.isdecimal():
                yield int(entry.name)


def _clients(process: str) -> Iterator[DrmClient]:
    """The GPUs that one process has open; one that ends meanwhile has none.

    Plain strings: a desktop has thousands of descriptors, and each is looked at every two seconds.
    """
    try:
        descriptors = os.listdir(f"{process}/fd")  # noqa: PTH208 - see above
    except (FileNotFoundError, ProcessLookupError):
        return
    for descriptor in descriptors:
        try:
            if not os.readlink(f"{process}/fd/{descriptor}").startswith(_DEVICES):  # noqa: PTH115 - see above
                continue
            client = parse_fdinfo(Path(f"{process}/fdinfo/{descriptor}").read_bytes())
        except (FileNotFoundError, ProcessLookupError):
            continue
        if client is not None:
            yield client


__all__ = ["FdinfoError", "Holder", "UnseenProcessesError", "holders", "loads"]
