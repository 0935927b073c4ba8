"""Where the server behind an upstream listens: a server on the network can be used without the gate.

It describes the socket that accepts the target's own connections, and decides nothing: many have a firewall
that this cannot see. Sockets of other programs on the same port say nothing about it.
"""

from __future__ import annotations

import ipaddress
from enum import StrEnum
from typing import TYPE_CHECKING

from vacancy_agent.upstreams.listeners import addresses_listening
from vacancy_agent.upstreams.process import local_addresses

if TYPE_CHECKING:
    from collections.abc import Collection

    from vacancy_agent.core.settings import Target

ALL = frozenset({"0.0.0.0", "::"})


class ListenerState(StrEnum):
    """Who may connect to an upstream's server besides the agent."""

    LOOPBACK_ONLY = "loopback_only"
    LISTENS_ON_NETWORK = "listens_on_network"
    UNKNOWN = "unknown"
    """Nothing accepts connections at the target just now, or the sockets cannot be read."""
    NOT_OBSERVABLE = "not_observable"
    """The target is not an address of this machine: no socket here describes it."""


def listener_state(target: Target) -> ListenerState:
    """The state of a target's server. It blocks: it reads the table of sockets."""
    addresses = local_addresses(target.host)
    if addresses is None:
        return ListenerState.NOT_OBSERVABLE
    try:
        return judge(addresses_listening(target.port), addresses)
    except (OSError, ValueError, IndexError):
        return ListenerState.UNKNOWN


def judge(listening: Collection[str], addresses: Collection[str]) -> ListenerState:
    """What sockets on the target's port say; one on the target's own address is served before one on all."""
    exact = set(listening) & set(addresses)
    if exact:
        inside = all(ipaddress.ip_address(one).is_loopback for one in exact)
        return ListenerState.LOOPBACK_ONLY if inside else ListenerState.LISTENS_ON_NETWORK
    return ListenerState.LISTENS_ON_NETWORK if ALL & set(listening) else ListenerState.UNKNOWN
