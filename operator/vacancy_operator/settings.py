"""What can be set about the operator, with the figures that follow from how Kubernetes behaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything of one operator process. Times are in seconds."""

    namespace: str
    kubeconfig: Path | None = None
    """None: the one that KUBECONFIG names, else the pod's own account."""
    identity: str = "operator"
    """Name of this replica, unique among them."""
    lease_name: str = "vacancy-operator"
    """Lease by which one of the replicas is the active one."""
    lease_duration: int = 15
    """Whole seconds. After a crash of the active replica nothing is written for so long."""
    lease_renew: float = 5.0
    listen: str = "0.0.0.0"
    port: int = 8080
    """Of /healthz, /readyz and /metrics; 0: any that is free."""
    policy_name: str = "vacancy-agent-token"
    """Name of the ValidatingAdmissionPolicy and of its binding."""
    policy_every: float = 15.0
    list_every: float = 300.0
    """Between two full LISTs: what a watch missed is found after so long at the latest."""
    healthy_for: float = 420.0
    """Without any event or LIST for so long, /healthz fails."""
    debounce: float = 0.05
    """Between the first event about a host and the decision."""
    spacing: float = 0.5
    """Between two decisions about one host, however many events there are."""
    longest_backoff: float = 60.0
    """Between two tries at something that fails."""
    workers: int = 4
    """Hosts that are worked on at a time."""
    contact_gap: float = 15.0
    """A silence of the API server that agents' Leases are not judged over."""
    token_life: int = 365 * 86_400
    """Asked for external hosts' tokens, seconds; the API server may give less. Renewed at two thirds."""
    watch_silence: float = 70.0
    """A watch without a sign for so long is opened anew. Bookmarks come every 60 s."""
    public_server: str | None = None
    """URL of the API server for machines outside the cluster; None: the one that the operator itself uses."""
    public_ca: Path | None = None
    """Its authority, PEM; None: the one that the operator itself trusts."""
