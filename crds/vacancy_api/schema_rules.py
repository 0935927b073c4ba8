"""What must hold between fields, as CEL rules of the custom resource.

They say what `cross_checks` says to manifests that no API server has seen; a test feeds both the same wrong
manifests. Every rule names the field to change. One about a whole list cannot point at an entry, so its
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


def _each(items: str, good: str, says: str, *, plain: str = "", quotes: str = "") -> Rule:
    """A rule about every entry `i` of a list of the spec. The message names the first that breaks it.

    `quotes` is the field whose value stands for `%` in the message, which `plain` says without it. The entry
    is reached by its position: of what `filter` returns the API server knows no length, so a message made
    from it would cost too much.
    """
    culprit = f"self.{items}[self.{items}.map(i, {good}).indexOf(false)]"
    message = says.replace("%", f"' + {culprit}.{quotes} + '")
    noun = items.removesuffix("s")
    return Rule(
        f"self.{items}.all(i, {good})",
        f"one {noun}: {plain or says}",
        items,
        f"'{noun} ' + {culprit}.name + ': {message}'",
    )


def _unique(items: str, key: str) -> str:
    return f"self.{items}.exists_one(o, o.{key} == i.{key})"


_OWN_PORTS = (
    "(int(url(i.target).getPort()) == self.access.apiPort "
    "|| self.upstreams.exists(o, int(url(i.target).getPort()) == o.port))"
)
_LOCAL = r"i.target.matches('^https?://((?i)localhost|127\\.[0-9.]+|\\[::1\\]):[0-9]+$')"

_SPEC = (
    _each("resources", _unique("resources", "name"), "another one has this name: give each its own name"),
    _each(
        "resources",
        f"!(i.type in {_GPU}) || has(i.device) || self.resources.exists_one(o, o.type == i.type)",
        "device is required where more than one resource has this type: "
        "name the GPU by its UUID or PCI address",
    ),
    _each(
        "resources",
        "!has(i.device) || self.resources.exists_one(o, has(o.device) && o.type == i.type "
        "&& o.device.lowerAscii() == i.device.lowerAscii())",
        "another one has this device too: declare each GPU once",
    ),
    _each("upstreams", _unique("upstreams", "name"), "another one has this name: give each its own name"),
    _each("upstreams", _unique("upstreams", "port"), "another one has this port: choose another"),
    _each(
        "upstreams",
        "i.port != self.access.apiPort",
        "this port is that of the API (spec.access.apiPort): choose another",
    ),
    _each(
        "upstreams",
        "self.resources.exists(r, r.name == i.resource)",
        "no resource is named %: declare it in spec.resources, or name one that is there",
        plain="its resource is not there: declare it in spec.resources, or name one that is there",
        quotes="resource",
    ),
    _each(
        "upstreams",
        "i.alsoRequires.all(a, self.resources.exists(r, r.name == a))",
        "alsoRequires names a resource that is not there: declare it in spec.resources, or name another",
    ),
    _each(
        "upstreams",
        f"!{_LOCAL} || !{_OWN_PORTS}",
        "this target is a port of the agent itself: write the port of the AI server",
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
        # with `has`: a default of `{}` is judged before the defaults inside it are filled in
        "!has(self.residentMinFreeMiB) "
        "|| (has(self.minFreeMiB) && self.residentMinFreeMiB <= self.minFreeMiB)",
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
