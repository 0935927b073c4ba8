"""The local AI servers that a LendingHost puts behind its gate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from vacancy_api.check_upstreams import YIELDING
from vacancy_api.fields import (
    Contract,
    DnsLabel,
    ModelName,
    ServiceName,
    TextRule,
    duration_between,
    ip_problem,
)
from vacancy_api.spec_access import Port, SecretKeyRef
from vacancy_api.spec_resources import MAX_MIB

DialectName = Literal["ollama", "llamacpp", "openai", "comfyui", "chatterbox"]
OwnerScopeName = Literal["host", "resource"]
ManagementPolicy = Literal["deny", "allow"]
OwnerReturnPolicy = Literal["drain", "cancel", "finish"]

DrainTimeout = Annotated[str, duration_between("0s", "1h")]
CompletionTimeout = Annotated[str, duration_between("0s", "24h")]
AssumeAfter = Annotated[str, duration_between("1s", "24h")]

TARGET_PATTERN = (
    r"^(http|https)://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?)(:[0-9]{1,5})?$"
)
_TARGET = re.compile(TARGET_PATTERN.removesuffix("$") + r"\Z")
_MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class TargetUrl:
    """A target taken apart; an IPv6 host is without its brackets."""

    scheme: str
    host: str
    port: int


def parse_target(text: str) -> TargetUrl | None:
    """The parts of a target that `target_problem` accepts, else None."""
    match = _TARGET.match(text)
    if match is None or target_problem(text) is not None:
        return None
    scheme, host, _, port = match.groups()
    return TargetUrl(scheme, host.strip("[]").lower(), int(port[1:]) if port else _default_port(scheme))


def _default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def target_problem(text: str) -> str | None:
    """What is wrong with the URL of a server, and what to write; None where nothing is."""
    match = _TARGET.match(text)
    if match is not None:
        return _host_problem(match.group(2)) or _port_problem(match.group(4))
    shown = text if len(text) <= 80 else text[:77] + "..."  # noqa: PLR2004 - a line of text
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in {"http", "https"}:
        return f"must start with http:// or https://, such as http://127.0.0.1:11434; got {shown!r}"
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        return "must not carry credentials: remove what stands before @ and use credentialSecretRef"
    if authority != rest and _TARGET.match(f"{scheme}://{authority}"):
        return f"must not have a path, query or fragment: write {scheme}://{authority}"
    return f"must be http(s)://HOST[:PORT], such as http://127.0.0.1:11434; got {shown!r}"


def _host_problem(host: str) -> str | None:
    if not host.startswith("[") and not re.fullmatch(r"[0-9.]+", host):
        return None
    if ip_problem(host.strip("[]")) is not None:
        return f"must name a host or a valid IP address; got {host!r}"
    return None


def _port_problem(port: str | None) -> str | None:
    if port is None or (port[1] != "0" and int(port[1:]) <= _MAX_PORT):
        return None
    return f"must have a port from 1 to {_MAX_PORT}; got {port[1:]}"


Target = Annotated[str, TextRule(target_problem, 300, {"x-vacancy-check": {"kind": "target"}})]
FootprintMiB = Annotated[int, Field(ge=0, le=MAX_MIB)]


class FootprintSpec(Contract):
    """Memory that a request needs."""

    min_free_mib: FootprintMiB = Field(
        default=0,
        alias="minFreeMiB",
        description=(
            "Free memory a request needs that may have to load the model, MiB; 0 to 67108864. Default 0."
        ),
    )
    resident_min_free_mib: FootprintMiB = Field(
        default=0,
        alias="residentMinFreeMiB",
        description=(
            "Free memory a request needs while the model is proved loaded, MiB; 0 to minFreeMiB. Default 0."
        ),
    )


class ModelSpec(FootprintSpec):
    """Memory that a request for one model needs."""

    name: ModelName = Field(description="Model name as requests spell it; 1 to 255 characters, unique.")


class ModelsSpec(Contract):
    """Memory that requests need, by model."""

    default: FootprintSpec = Field(
        default_factory=FootprintSpec, description="What a request for a model without an item needs."
    )
    items: list[ModelSpec] = Field(
        default_factory=list,
        max_length=256,
        description="What single models need; at most 256. Default none.",
    )


class UpstreamSpec(Contract):
    """One AI server of the machine and the port at which it is lent."""

    name: DnsLabel = Field(description="Name of the upstream; a DNS label, unique in the host.")
    dialect: DialectName = Field(
        description=(
            "API of the server: ollama, llamacpp (llama-server), openai (vLLM and others), comfyui, "
            "chatterbox."
        ),
    )
    target: Target = Field(description="URL of the server as the agent reaches it: http(s)://HOST[:PORT].")
    port: Port = Field(description="Port that the agent listens on for borrowers; 1 to 65535, unique.")
    resource: DnsLabel = Field(description="Name of the resource that the server's work uses.")
    also_requires: list[DnsLabel] = Field(
        default_factory=list,
        max_length=31,
        description="Names of further resources that the work uses; at most 31. Default none.",
    )
    owner_scope: OwnerScopeName = Field(
        default="host",
        description=(
            "host: the owner's presence stops the upstream. resource: only the load on its resources does. "
            "Default host."
        ),
    )
    management: ManagementPolicy = Field(
        default="deny",
        description=(
            "allow: borrowers may also administer the server (load, delete, read its state). Default deny."
        ),
    )
    on_owner_return: OwnerReturnPolicy = Field(
        default="drain",
        description=(
            "Work that runs when the owner returns: cancel ends it at once, drain after drainTimeout, "
            "finish lets it end. Default drain."
        ),
    )
    drain_timeout: DrainTimeout = Field(
        default="30s", description="Time that drain leaves to running work; 0s to 1h. Default 30s."
    )
    completion_timeout: CompletionTimeout = Field(
        default="10m",
        description="Longest time that finish puts off unloading the model; 0s to 24h. Default 10m.",
    )
    assume_ended_after: AssumeAfter | None = Field(
        default=None,
        description=(
            "Time after which work whose end cannot be proved counts as ended; 1s to 24h. Absent: never, it "
            "stays held until proof or an administrator frees it."
        ),
    )
    yield_on_veto: bool | None = Field(
        default=None,
        description=(
            "Ask the server to unload when the owner returns. Default true for ollama and comfyui; "
            "else refused."
        ),
    )
    priority_scheduling: bool = Field(
        default=False,
        description=(
            "The server is a vLLM that runs with --scheduling-policy priority; openai only. Default false."
        ),
    )
    slots: Annotated[int, Field(ge=1, le=1024)] = Field(
        default=1,
        description="Jobs that the upstream may run at a time on its resources; 1 to 1024. Default 1.",
    )
    models: ModelsSpec = Field(default_factory=ModelsSpec, description="Memory that requests need, by model.")
    forward_authorization: bool = Field(
        default=False,
        description="Pass the borrower's Authorization header on to the server. Default false.",
    )
    credential_secret_ref: SecretKeyRef | None = Field(
        default=None,
        description="Bearer token that the agent itself presents to the server. Absent: none.",
    )
    service: ServiceName | None = Field(
        default=None,
        description="Name of the cluster Service that fronts the upstream. Absent: none.",
    )

    @property
    def yields(self) -> bool:
        """`yieldOnVeto` with its default, which depends on the dialect."""
        return self.dialect in YIELDING if self.yield_on_veto is None else self.yield_on_veto
