"""Is the admission policy in force that keeps a node from another node's identity?

Invariant: a policy counts only if it can refuse: it fails closed and its binding denies. One that merely
audits, or that a failure switches off, protects nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_operator.api import ApiError
from vacancy_operator.core.facts import Policy

if TYPE_CHECKING:
    from vacancy_operator.api import Api
    from vacancy_operator.core.kinds import Object
    from vacancy_operator.log import Trouble

ROOT = "/apis/admissionregistration.k8s.io/v1"
_FORBIDDEN = 403


async def read_policy(api: Api, name: str, trouble: Trouble) -> Policy:
    """Look at the policy and its binding, both of this name."""
    try:
        policy = await api.read(f"{ROOT}/validatingadmissionpolicies/{name}")
        binding = await api.read(f"{ROOT}/validatingadmissionpolicybindings/{name}")
    except ApiError as error:
        trouble.met(error)
        return Policy.MISSING if error.status == _FORBIDDEN else Policy.UNKNOWN
    trouble.over()
    return Policy.IN_FORCE if refuses(policy, binding, name) else Policy.MISSING


def refuses(policy: Object | None, binding: Object | None, name: str) -> bool:
    """Whether policy and binding together refuse anything."""
    rules = (policy or {}).get("spec") or {}
    bound = (binding or {}).get("spec") or {}
    return (
        rules.get("failurePolicy", "Fail") == "Fail"
        and bool(rules.get("validations"))
        and bound.get("policyName") == name
        and "Deny" in (bound.get("validationActions") or [])
    )
