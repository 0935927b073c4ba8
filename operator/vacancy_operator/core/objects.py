"""The objects that a host needs, as they are to be.

Invariant: the identity of a host can act for that host and no other. Every rule of its Role names the objects
it is about; `list` and `watch` of a named object are allowed by Kubernetes for a field selector on that name
alone. A Role without names would let one gaming box read every other's tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vacancy_operator.core.kinds import FIELD_MANAGER, MANAGED_BY, ROLE, Names, Ref, metadata, uid
from vacancy_operator.core.tokens import claims, decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_operator.core.configuration import Configured
    from vacancy_operator.core.facts import JoinAddress
    from vacancy_operator.core.kinds import Object

READ = ["get", "list", "watch"]


def skeleton(ref: Ref, host: Object) -> dict[str, Any]:
    """An object of a host with nothing in it yet: name, our label, and the host as its owner."""
    about = metadata(host)
    owner = {
        "apiVersion": str(host["apiVersion"]),
        "kind": str(host["kind"]),
        "name": str(about["name"]),
        "uid": uid(host),
        "controller": True,
    }
    return {
        "apiVersion": ref.kind.api_version,
        "kind": ref.kind.name,
        "metadata": {
            "name": ref.name,
            "namespace": str(about["namespace"]),
            "labels": {MANAGED_BY: FIELD_MANAGER},
            "ownerReferences": [owner],
        },
    }


def tokens_secret(host: Object, names: Names, tokens: Mapping[str, str]) -> Object:
    """The Secret with the host's own tokens."""
    return {**skeleton(names.tokens, host), "type": "Opaque", "data": encoded(tokens)}


def config_map(host: Object, names: Names, text: str) -> Object:
    """The ConfigMap with `agent.json`."""
    return {**skeleton(names.config, host), "data": {"agent.json": text}}


def lease(host: Object, names: Names) -> Object:
    """The Lease that the agent renews. It is made here so that the agent needs no right to create any."""
    return skeleton(names.lease, host)


def identity(host: Object, names: Names, configured: Configured) -> tuple[Object, Object, Object]:
    """Account, role and binding of a host."""
    account = {**skeleton(names.account, host), "automountServiceAccountToken": False}
    role = {**skeleton(names.role, host), "rules": rules(str(metadata(host)["name"]), names, configured)}
    namespace = str(metadata(host)["namespace"])
    binding = {
        **skeleton(names.binding, host),
        "roleRef": {"apiGroup": ROLE.group, "kind": ROLE.name, "name": names.role.name},
        "subjects": [{"kind": "ServiceAccount", "name": names.account.name, "namespace": namespace}],
    }
    return account, role, binding


def rules(host: str, names: Names, configured: Configured) -> list[dict[str, Any]]:
    """What the agent of a host may do."""
    secrets = [*configured.secrets, *([names.join.name] if configured.external else [])]
    found = [
        rule("vacancy.dev", "lendinghosts", [host], READ),
        rule("vacancy.dev", "lendinghosts/status", [host], ["patch"]),
        rule("", "configmaps", [names.config.name], READ),
        rule("coordination.k8s.io", "leases", [names.lease.name], ["get", "patch"]),
    ]
    return [*found, rule("", "secrets", sorted(secrets), READ)] if secrets else found


def rule(group: str, resource: str, names: list[str], verbs: list[str]) -> dict[str, Any]:
    """One rule of a Role."""
    return {"apiGroups": [group], "resources": [resource], "resourceNames": names, "verbs": list(verbs)}


def join_secret(host: Object, names: Names, address: JoinAddress, live: Object | None) -> Object:
    """What an external machine needs to join. The token that is there is kept."""
    about = metadata(host)
    values = {
        "server": address.server,
        "ca.crt": address.ca,
        "namespace": str(about["namespace"]),
        "name": str(about["name"]),
    }
    token = decoded(live, "token")
    with_token = {**values, "token": token} if token else values
    return {**skeleton(names.join, host), "type": "Opaque", "data": encoded(with_token)}


def token_is_due(join: Object, account: Object, wall: float) -> bool:
    """Whether an external host needs a new token: none, one of another account or Secret, or an old one."""
    found = claims(decoded(join, "token"))
    return (
        found is None
        or found.account_uid != uid(account)
        or found.secret_uid != uid(join)
        or wall >= found.renew_at
    )
