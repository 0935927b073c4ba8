"""The resource LendingHost: a machine that lends, as its owner describes it.

Invariant: an instance of `LendingHostSpec` is wholly valid. What holds between fields is not written as
many validators but as one pass over plain data (`cross_checks`), which runs here after the fields and again
on what is left of a manifest whose fields are wrong, so that people see every error at once.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from vacancy_api.cross_checks import cross_check
from vacancy_api.fields import Contract, DnsLabel, Rfc3339, TextRule, complaint, subdomain_problem
from vacancy_api.spec_access import AccessSpec, LimitsSpec
from vacancy_api.spec_host import ExternalSpec, OwnerSpec, SamplingSpec, ScheduleSpec
from vacancy_api.spec_resources import ResourceSpec
from vacancy_api.spec_upstreams import UpstreamSpec

API_VERSION = "vacancy.dev/v1alpha1"
KIND = "LendingHost"

HostName = Annotated[str, TextRule(subdomain_problem, 243)]
"""A host's name: the longest object named after it, `lh-NAME-config`, must still be a legal name."""


class LendingHostSpec(Contract):
    """What a machine lends, to whom, and when."""

    external: ExternalSpec | None = Field(
        default=None,
        description="A machine outside the cluster. Absent: the Node of the same name.",
    )
    lending: bool = Field(default=True, description="The owner's master switch. Default true.")
    paused_until: Rfc3339 | None = Field(
        default=None,
        description="RFC 3339 time until which nothing is lent. Absent: not paused.",
    )
    schedule: ScheduleSpec | None = Field(
        default=None, description="When lending is allowed. Absent: always."
    )
    owner: OwnerSpec = Field(
        default_factory=OwnerSpec, description="How the presence of the machine's owner is judged."
    )
    sampling: SamplingSpec = Field(default_factory=SamplingSpec, description="Cadence of the observations.")
    resources: list[ResourceSpec] = Field(
        default_factory=list, max_length=32, description="What is lent; at most 32. Default none."
    )
    upstreams: list[UpstreamSpec] = Field(
        default_factory=list, max_length=64, description="AI servers that are lent; at most 64. Default none."
    )
    access: AccessSpec = Field(
        default_factory=AccessSpec, description="Where the agent listens, and who gets in."
    )
    limits: LimitsSpec = Field(
        default_factory=LimitsSpec, description="Bounds of bodies, connections and waiting, per listener."
    )

    @model_validator(mode="after")
    def _hold_together(self) -> Self:
        problems = cross_check(self.model_dump(by_alias=True))
        if problems:
            details = [
                InitErrorDetails(type=complaint(problem.message), loc=problem.loc, input=None)
                for problem in problems
            ]
            raise ValidationError.from_exception_data("LendingHostSpec", details)
        return self


class Metadata(Contract):
    """The part of an object's metadata that is read; what else Kubernetes puts there is dropped before."""

    model_config = ConfigDict(extra="ignore")

    name: HostName = Field(description="Name of the host; in a cluster that of its Node unless external.")
    namespace: DnsLabel = Field(default="default", description="Namespace. Default default.")
    uid: str = Field(default="", max_length=64, description="Identity given by the API server; empty alone.")
    generation: int = Field(
        default=0, ge=0, description="Generation of the spec, counted by the API server; 0 alone."
    )
    labels: dict[str, str] = Field(default_factory=dict, description="Labels; not interpreted.")
    annotations: dict[str, str] = Field(default_factory=dict, description="Annotations; not interpreted.")


class LendingHost(Contract):
    """A machine that lends. Its status is a model of its own (`vacancy_api.status`)."""

    api_version: Literal["vacancy.dev/v1alpha1"] = Field(description="Always vacancy.dev/v1alpha1.")
    kind: Literal["LendingHost"] = Field(description="Always LendingHost.")
    metadata: Metadata = Field(description="Name and namespace of the object.")
    spec: LendingHostSpec = Field(description="What the machine lends, to whom, and when.")
