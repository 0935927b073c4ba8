"""Which process of this machine serves a target, and what its tree uses.

Only a target that names this machine selects a process: a loopback address, `localhost`, or an address of one
of its interfaces. A host name never does, since what it resolves to is not ours to decide. The listener of a
target is not always who computes: where it only relays (a container's port, a tunnel), its tree is idle while
the work goes on elsewhere, so a known relay proves nothing by being quiet. A relay that is not on the list is
taken for the server; the limits say so.

These calls block (they read /proc): run them beside the loop.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from vacancy_agent.core.facts import ProcessIdentity
from vacancy_agent.upstreams.listeners import listeners
from vacancy_agent.upstreams.quiet import TreeSample

if TYPE_CHECKING:
    from collections.abc import Collection

    from vacancy_agent.core.facts import Instant
    from vacancy_agent.core.settings import Target
    from vacancy_agent.upstreams.listeners import Listener

RELAYS = frozenset(
    {"docker-proxy", "rootlesskit", "rootlessport", "slirp4netns", "pasta", "passt", "gvproxy", "limactl"}
    | {"com.docker.backend", "com.docker.backend.exe", "vpnkit-bridge", "wslrelay.exe", "svchost.exe"}
    | {"kubectl", "socat", "ssh", "sshd", "nginx", "haproxy", "envoy", "caddy", "traefik"}
)
"""Names of programs that listen for others."""
HANDS_ON = frozenset({"ollama", "ollama.exe"})
"""Names of programs that compute nothing themselves: every model of Ollama's has a runner of its own."""


@dataclass(frozen=True, slots=True)
class NotLocal:
    """The target is not on this machine, as far as its address tells."""


@dataclass(frozen=True, slots=True)
class NotFound:
    """No process can be named: nothing listens, it belongs to another user, or several could be meant."""

    why: str
    nothing_listens: bool = False


@dataclass(frozen=True, slots=True)
class Relayed:
    """The listener passes connections on; who serves them is unknown."""

    listener: ProcessIdentity
    name: str


Serving = ProcessIdentity | Relayed | NotFound | NotLocal


def local_addresses(host: str) -> frozenset[str] | None:
    """The addresses of this machine that `host` means; None when it is not known to be this machine."""
    if host.lower().rstrip(".") == "localhost":
        return frozenset({"127.0.0.1", "::1"})
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if address.is_loopback or str(address) in _own_addresses():
        return frozenset({str(address)})
    return None


def _own_addresses() -> set[str]:
    try:
        interfaces = psutil.net_if_addrs().values()
    except OSError:
        return set()  # no descriptor is free: what is not known to be here is elsewhere
    return {address.address.partition("%")[0] for addresses in interfaces for address in addresses}


def serving_process(target: Target) -> Serving:
    """The process that accepts the target's connections."""
    addresses = local_addresses(target.host)
    if addresses is None:
        return NotLocal()
    try:
        sockets = listeners(target.port)
    except (OSError, ValueError, IndexError) as error:
        return NotFound(f"listening sockets cannot be read: {error}")
    accepting = accepting_processes(sockets, addresses)
    if not accepting:
        return NotFound("nothing listens there", nothing_listens=True)
    if None in accepting:
        return NotFound("its process cannot be seen: the agent lacks the right to look")
    return _one_of({pid for pid in accepting if pid is not None})


def accepting_processes(sockets: Collection[Listener], addresses: frozenset[str]) -> set[int | None]:
    """Who accepts connections to one of the addresses: a listener on the address itself, else on all."""
    exact = {pid for address, pid in sockets if address in addresses}
    return exact or {pid for address, pid in sockets if address in ("0.0.0.0", "::")}


def _one_of(pids: set[int]) -> Serving:
    """Of processes that share the socket, the one all others descend from."""
    try:
        processes = {pid: psutil.Process(pid) for pid in pids}
        tops = [pid for pid, process in processes.items() if not pids & {up.pid for up in process.parents()}]
        if len(tops) != 1:
            return NotFound(f"several processes listen there: {', '.join(map(str, sorted(pids)))}")
        top = processes[tops[0]]
        found = ProcessIdentity(top.pid, started_at(top))
        return Relayed(found, top.name()) if top.name() in RELAYS else found
    except (psutil.Error, OSError, ValueError):
        return NotFound("its process ended while it was looked at")


def started_at(process: psutil.Process) -> float:
    """The start that tells a process from its successors.

    On Linux the kernel's own figure, in ticks since boot: psutil's is on the wall clock and moves with it.

    Raises:
        psutil.NoSuchProcess: it has ended.
        psutil.AccessDenied: it cannot be looked at, be it for want of a descriptor.
    """
    if sys.platform != "linux":
        return process.create_time()
    else:  # noqa: RET505 - mypy leaves out a branch of another platform, not what follows one
        try:
            with open(f"/proc/{process.pid}/stat", "rb") as stat:  # noqa: PTH123 - hot: every process of a tree
                return float(stat.read().rpartition(b")")[2].split()[19])
        except (FileNotFoundError, ProcessLookupError, IndexError) as error:
            raise psutil.NoSuchProcess(process.pid) from error
        except OSError as error:
            raise psutil.AccessDenied(process.pid) from error


def began_after(identity: ProcessIdentity, at: Instant) -> bool:
    """Whether the process certainly started after `at`; False where that cannot be told."""
    if sys.platform == "linux":
        return identity.started / os.sysconf("SC_CLK_TCK") > at
    else:  # noqa: RET505 - mypy leaves out a branch of another platform, not what follows one
        return False


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether this very process still runs; one that only waits to be reaped does not."""
    try:
        process = psutil.Process(identity.pid)
        return started_at(process) == identity.started and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except (psutil.Error, OSError):
        return True


def sample_tree(root: ProcessIdentity, at: Instant) -> TreeSample | None:
    """What the process and everything below it have used so far.

    None: it is not there any more, or a part of the tree cannot be looked at, whose work would be missing.

    Of a program that has its work done by processes below it, these alone count while there are any: else a
    borrower who leaves and then asks it for lists all day would keep a place for ever.
    """
    if not is_alive(root):
        return None
    try:
        top = psutil.Process(root.pid)
        tree = [top, *top.children(recursive=True)]
    except (psutil.Error, OSError):
        return None
    cpu: dict[ProcessIdentity, float] = {}
    for process in tree:
        try:
            cpu[ProcessIdentity(process.pid, started_at(process))] = sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue  # it ended: what it used is in its parent's figure for ended children
        except (psutil.Error, OSError):
            return None
    if root not in cpu:
        return None
    if len(cpu) > 1 and _name(top) in HANDS_ON:
        cpu[root] = 0.0
    return TreeSample(at, root, cpu)


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except (psutil.Error, OSError):
        return ""
