"""Answers of admission: a refusal is a value, never an exception.

Usage: `gate` and `ledger` return `Admit` or `Refuse`; the proxy turns a `Refuse` into the reply of
`interfaces.md` ("refusal"). `detail` carries measured numbers and names out of the configuration, never
anything about a person.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import MiB
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_DETAIL: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Admit:
    """The gate's yes."""

    charged: MiB = MiB(0)
    """Free memory the request was charged with by its model's footprint (step 6)."""
    credited: bool = False
    """The model was proved resident, so `residentMinFreeMiB` was charged; pass it on to the ledger."""
    credit: str = ""
    """Why a credit applied or did not, for people."""
    added: MiB = MiB(0)
    """Memory that was added to what is free on the card (comfyui)."""

    @property
    def relieved(self) -> bool:
        """What the upstream holds stood for some of the free memory that the request needs."""
        return self.credited or self.added > 0


@dataclass(frozen=True, slots=True)
class Refuse:
    """A no with its reason code and a hint in whole seconds (at least 1) for Retry-After."""

    reason: Reason
    retry_after: int
    detail: Mapping[str, object] = field(default_factory=lambda: NO_DETAIL)
    step: int = 0
    """Number of the gate's step that refused; 7 is the ledger."""
    needs_sample: tuple[str, ...] = ()
    """Resources whose capacity must be read once more before this refusal can turn into a yes."""
    needs_residency: bool = False
    """Only the age of the residency observation stood against a credit: observe once and decide again."""


Verdict = Admit | Refuse

_SENTENCES: dict[Reason, str] = {
    Reason.LENDING_DISABLED: "this host does not lend at the moment",
    Reason.OWNER_ACTIVE: "the owner of this host is using it, or may be",
    Reason.RESOURCE_DISABLED: "a resource this upstream needs is switched off",
    Reason.RESOURCE_UNMEASURED: "a resource this upstream needs could not be measured",
    Reason.INSUFFICIENT_CAPACITY: "a resource this upstream needs has too little room",
    Reason.RESOURCE_PRESSURED: "the owner's own work loads a resource this upstream needs",
    Reason.UPSTREAM_NOT_ON_GPU: "the upstream does not hold the model on the card",
    Reason.UPSTREAM_UNAVAILABLE: "no proxy of this host listens",
    Reason.RESOURCE_BUSY: "a resource this upstream needs is in use by other borrowed work",
}

_OFF_BY: dict[object, str] = {
    "spec": "lending is switched off in this host's manifest",
    "schedule": "this host lends at other hours",
    "cluster": "lending from this host is paused by the cluster",
    "local": "lending is paused on this host",
}
"""By what keeps lending off: `core.lending.By`, as the refusal's detail names it."""


def sentence(refusal: Refuse) -> str:
    """The refusal in words for the borrower; says nothing about a person beyond `owner_active` itself."""
    words = _SENTENCES[refusal.reason]
    if refusal.reason is Reason.LENDING_DISABLED:
        return _OFF_BY.get(refusal.detail.get("by"), words)
    return words
