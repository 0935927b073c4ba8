"""What must hold between fields, as CEL rules of the custom resource.

They say what `cross_checks` says to manifests that no API server has seen; a test feeds both the same wrong
manifests. Every rule names the field to change. A rule about a whole list cannot point at one entry, so its
message names the entry. Rejected: `reason: FieldValueDuplicate`, with which the API server drops the message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of one model: `rule` is true of a good object, `says` completes "FIELD ...".

    `names` is a CEL expression for the same message with the culprits in it; `says` stands in for it where
    the API server cannot evaluate it.
    """

    rule: str
    says: str
    field: str
    names: str = ""

    def as_validation(self) -> dict[str, str]:
        """The entry of `x-kubernetes-validations`."""
        named = {"messageExpression": self.names} if self.names else {}
        return {
            "rule": self.rule,
            "message": self.says,
            **named,
            "reason": "FieldValueInvalid",
            "fieldPath": f".{self.field}",
        }


_GPU = "['nvidia', 'amd']"
_DECLARED = "': declare it in spec.resources, or name one of: ' + self.resources.map(r, r.name).join(', ')"
_OWN_PORT = (
    "(u.target.endsWith(':' + string(self.access.apiPort)) "
    "|| self.upstreams.exists(o, u.target.endsWith(':' + string(o.port))))"
)
_LOCAL = r"u.target.matches('^https?://((?i)localhost|127\\.[0-9.]+|\\[::1\\]):[0-9]+$')"


def _repeated(items: str, key: str) -> str:
    """The values of `key` that occur more than once in a list, as text."""
    others = f"{items}.exists_one(o, o.{key} == i.{key})"
    return f"{items}.filter(i, !{others}).map(i, string(i.{key})).join(', ')"


def _unique(items: str, key: str) -> str:
    return f"{items}.all(i, {items}.exists_one(o, o.{key} == i.{key}))"


_SPEC = (
    Rule(
        _unique("self.resources", "name"),
        "has two resources of one name: give each its own name",
        "resources",
        f"'has more than one resource of the name ' + {_repeated('self.resources', 'name')} "
        "+ ': give each its own name'",
    ),
    Rule(
        f"self.resources.all(r, !(r.type in {_GPU}) || has(r.device) "
        "|| self.resources.exists_one(o, o.type == r.type))",
        "device is required where more than one resource has the same GPU type: "
        "name the GPU by its UUID or PCI address",
        "resources",
    ),
    Rule(
        "self.resources.all(r, !has(r.device) || self.resources.exists_one(o, has(o.device) "
        "&& o.type == r.type && o.device.lowerAscii() == r.device.lowerAscii()))",
        "has two resources of one device: declare each GPU once",
        "resources",
    ),
    Rule(
        _unique("self.upstreams", "name"),
        "has two upstreams of one name: give each its own name",
        "upstreams",
        f"'has more than one upstream of the name ' + {_repeated('self.upstreams', 'name')} "
        "+ ': give each its own name'",
    ),
    Rule(
        _unique("self.upstreams", "port"),
        "has two upstreams of one port: choose another",
        "upstreams",
        f"'has more than one upstream of the port ' + {_repeated('self.upstreams', 'port')} "
        "+ ': choose another'",
    ),
    Rule(
        "self.upstreams.all(u, u.port != self.access.apiPort)",
        "has an upstream whose port is that of the API (spec.access.apiPort): choose another",
        "upstreams",
    ),
    Rule(
        "self.upstreams.all(u, self.resources.exists(r, r.name == u.resource))",
        "names a resource that is not declared in spec.resources: declare it, or name another",
        "upstreams",
        "'no resource is named ' + self.upstreams.filter(u, !self.resources.exists(r, r.name == u.resource))"
        f".map(u, u.resource).join(', ') + {_DECLARED}",
    ),
    Rule(
        "self.upstreams.all(u, u.alsoRequires.all(a, self.resources.exists(r, r.name == a)))",
        "alsoRequires names a resource that is not declared in spec.resources: declare it, or name another",
        "upstreams",
    ),
    Rule(
        f"self.upstreams.all(u, !{_LOCAL} || !{_OWN_PORT})",
        "has a target that is a port of the agent itself: write the port of the AI server",
        "upstreams",
    ),
)

_RESOURCE = (
    Rule(
        f"self.type in {_GPU} || !has(self.device)",
        "is only for nvidia and amd: remove it from this resource",
        "device",
    ),
    Rule(
        f"self.type in {_GPU} || self.memory != 'unified'",
        "unified is only for nvidia and amd: remove it from this resource",
        "memory",
    ),
    Rule(
        f"self.type in {_GPU} || !has(self.pressure)",
        "is only for nvidia and amd: remove it from this resource",
        "pressure",
    ),
    Rule(
        "self.type != 'cpu' || self.capacity.minFreeMiB == 0",
        "minFreeMiB is not for cpu: use maxUtilizationPercent",
        "capacity",
    ),
    Rule(
        "self.type == 'cpu' || !has(self.capacity.maxUtilizationPercent)",
        "maxUtilizationPercent is only for cpu: use minFreeMiB",
        "capacity",
    ),
)

_PRESSURE = (
    Rule(
        "self.mode != 'fixed' || has(self.thresholdPercent)",
        "is required with mode fixed: a percentage from 1 to 100",
        "thresholdPercent",
    ),
    Rule(
        "self.mode == 'fixed' || !has(self.thresholdPercent)",
        "has an effect with mode fixed only: remove it, or write mode: fixed",
        "thresholdPercent",
    ),
)

_UPSTREAM = (
    Rule(
        "!(self.resource in self.alsoRequires)",
        "names the upstream's own resource: remove it",
        "alsoRequires",
    ),
    Rule(
        "self.alsoRequires.all(a, self.alsoRequires.exists_one(b, a == b))",
        "lists a resource twice: remove one",
        "alsoRequires",
    ),
    Rule(
        "!has(self.yieldOnVeto) || !self.yieldOnVeto || self.dialect in ['ollama', 'comfyui']",
        "this server cannot be asked to unload: remove it (ollama and comfyui can)",
        "yieldOnVeto",
    ),
    Rule(
        "!self.priorityScheduling || self.dialect == 'openai'",
        "is only for vLLM (dialect openai): remove it",
        "priorityScheduling",
    ),
    Rule(
        "!self.forwardAuthorization || !has(self.credentialSecretRef)",
        "contradicts credentialSecretRef, which replaces the borrower's header: keep one of the two",
        "forwardAuthorization",
    ),
)

_FOOTPRINT = (
    Rule(
        "self.residentMinFreeMiB <= self.minFreeMiB",
        "is more than minFreeMiB: a loaded model needs no more than one that has to be loaded",
        "residentMinFreeMiB",
    ),
)

_WINDOW = (
    Rule(
        "self.days.all(a, self.days.exists_one(b, a == b))",
        "lists a day twice: remove one",
        "days",
    ),
)

_LIMITS = (
    Rule(
        "!has(self.maxBufferedBodyMiB) || self.maxBufferedBodyMiB >= self.maxRequestBodyMiB",
        "is less than maxRequestBodyMiB: such a body could never be taken; raise it or remove it",
        "maxBufferedBodyMiB",
    ),
)

RULES: Mapping[str, tuple[Rule, ...]] = {
    "LendingHostSpec": _SPEC,
    "ResourceSpec": _RESOURCE,
    "PressureSpec": _PRESSURE,
    "UpstreamSpec": _UPSTREAM,
    "FootprintSpec": _FOOTPRINT,
    "ModelSpec": _FOOTPRINT,
    "WindowSpec": _WINDOW,
    "LimitsSpec": _LIMITS,
}
"""By the name of the model whose instances a rule judges."""

_BY_NAME = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}

FIELDS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "LendingHostSpec": {"resources": _BY_NAME, "upstreams": _BY_NAME},
    "ModelsSpec": {"items": _BY_NAME},
    "LendingHostStatus": {
        "conditions": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    },
    "Condition": {"lastTransitionTime": {"format": "date-time"}},
}
"""What a custom resource says of a field and a model does not: by model, then by field."""
