"""The kinds of object that the operator deals with, and the names of those that belong to a host.

Names decide whom an object belongs to. Rejected: owner references, which anybody who may edit the object can
take away, and which do not tell where the object of a host would be that is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NewType

Object = Mapping[str, Any]
"""An object of the API server as plain data."""

HostName = NewType("HostName", str)

GROUP, VERSION = "vacancy.dev", "v1alpha1"
FIELD_MANAGER = "vacancy-operator"
MANAGED_BY = "app.kubernetes.io/managed-by"
SELECTOR = f"{MANAGED_BY}={FIELD_MANAGER}"
"""Selects what the operator made."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object and where the API server serves it."""

    name: str
    group: str
    version: str
    plural: str
    labelled: bool = True
    """Whether only objects with our label are looked at."""

    @property
    def api_version(self) -> str:
        """Group and version as an object names them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """Path of the group and version below the server's address."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


LENDING_HOST = Kind("LendingHost", GROUP, VERSION, "lendinghosts", labelled=False)
CONFIG_MAP = Kind("ConfigMap", "", "v1", "configmaps")
SECRET = Kind("Secret", "", "v1", "secrets")
SERVICE_ACCOUNT = Kind("ServiceAccount", "", "v1", "serviceaccounts")
ROLE = Kind("Role", "rbac.authorization.k8s.io", "v1", "roles")
ROLE_BINDING = Kind("RoleBinding", "rbac.authorization.k8s.io", "v1", "rolebindings")
LEASE = Kind("Lease", "coordination.k8s.io", "v1", "leases")
KINDS = (LENDING_HOST, CONFIG_MAP, SECRET, SERVICE_ACCOUNT, ROLE, ROLE_BINDING, LEASE)
"""Everything that is listed and watched."""


@dataclass(frozen=True, slots=True)
class Ref:
    """An object in the operator's namespace."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.name} {self.name}"


@dataclass(frozen=True, slots=True)
class Names:
    """What belongs to one host."""

    config: Ref
    tokens: Ref
    join: Ref
    account: Ref
    role: Ref
    binding: Ref
    lease: Ref

    @classmethod
    def of(cls, host: str) -> Names:
        """The names for a host."""
        base = f"lh-{host}"
        return cls(
            config=Ref(CONFIG_MAP, f"{base}-config"),
            tokens=Ref(SECRET, f"{base}-tokens"),
            join=Ref(SECRET, f"{base}-join"),
            account=Ref(SERVICE_ACCOUNT, base),
            role=Ref(ROLE, base),
            binding=Ref(ROLE_BINDING, base),
            lease=Ref(LEASE, base),
        )

    @property
    def identity(self) -> tuple[Ref, Ref, Ref]:
        """What makes the agent somebody, in the order in which it is made."""
        return (self.account, self.role, self.binding)

    @property
    def all(self) -> tuple[Ref, ...]:
        """All of them."""
        return (self.tokens, self.config, *self.identity, self.lease, self.join)


_SUFFIXES: dict[Kind, tuple[str, ...]] = {CONFIG_MAP: ("-config",), SECRET: ("-tokens", "-join")}


def host_of(ref: Ref) -> HostName | None:
    """The host that an object belongs to by its name; None: to no host."""
    if ref.kind == LENDING_HOST:
        return HostName(ref.name)
    if not ref.name.startswith("lh-"):
        return None
    rest = ref.name.removeprefix("lh-")
    for suffix in _SUFFIXES.get(ref.kind, ("",)):
        if rest.endswith(suffix) and len(rest) > len(suffix):
            return HostName(rest.removesuffix(suffix))
    return None


def metadata(item: Object) -> Object:
    """The metadata of an object, empty where there is none."""
    found = item.get("metadata")
    return found if isinstance(found, Mapping) else {}


def uid(item: Object) -> str:
    """The identity of an object."""
    return str(metadata(item).get("uid", ""))


def version(item: Object) -> int:
    """The resource version of an object, which orders the states of one collection; 0 where there is none."""
    text = str(metadata(item).get("resourceVersion", ""))
    return int(text) if text.isdigit() else 0
