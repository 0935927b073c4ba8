"""The status of a LendingHost: what its agent reports and what the operator concludes.

Invariant: nothing here names a user, a process, a window or an idle time; whoever may read a LendingHost may
read all of it. These models are what the schema of the status is generated from and what a reader parses;
an agent that writes often may hand over plain data of this shape.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from vacancy_api.fields import Contract

ShortText = Annotated[str, Field(max_length=253)]
LongText = Annotated[str, Field(max_length=1024)]
Count = Annotated[int, Field(ge=0)]
ModelList = Annotated[list[ShortText], Field(max_length=64)]

ReadingState = Literal["unknown", "ready", "stale"]
PressureState = Literal["off", "suspended", "unknown", "calibrating", "clear", "engaged"]
LendingSource = Literal["spec", "schedule", "cluster", "local"]
ListenerState = Literal["loopback_only", "listens_on_network", "unknown", "not_observable"]
ConditionStatus = Literal["True", "False", "Unknown"]


class Report(Contract):
    """Base of the status models: what a newer writer adds is ignored."""

    model_config = ConfigDict(extra="ignore")


class SummaryStatus(Report):
    """What `kubectl get lh` shows of the agent."""

    free_vram: ShortText | None = Field(
        default=None,
        alias="freeVRAM",
        description="Free GPU memory of all GPUs, such as 11.5Gi. Absent: unknown.",
    )
    models: ModelList = Field(default_factory=list, description="Models that are loaded; at most 64.")
    active: Count = Field(default=0, description="Jobs that run or are held.")


class LendingStatus(Report):
    """Whether the switches allow lending."""

    allowed: bool = Field(description="Whether switch, schedule and pauses all allow lending.")
    paused_until: ShortText | None = Field(
        default=None, description="RFC 3339 time at which the pause ends. Absent: not paused, or without end."
    )
    by: LendingSource | None = Field(
        default=None, description="What forbids lending: spec, schedule, cluster (pausedUntil) or local."
    )


class PressureStatus(Report):
    """The owner's load on a GPU, as judged."""

    state: PressureState = Field(description="off, suspended, unknown, calibrating, clear or engaged.")
    threshold_percent: float | None = Field(default=None, description="Load that refuses work, percent.")
    calibrated_minutes: float | None = Field(
        default=None, description="Minutes observed so far while the threshold is being learned."
    )


class ResourceStatus(Report):
    """One resource as last measured."""

    name: ShortText = Field(description="Name of the resource.")
    type: ShortText = Field(description="nvidia, amd, memory or cpu.")
    state: ReadingState = Field(description="Whether the last reading can be used.")
    reason: LongText | None = Field(default=None, description="Why the resource is not lent. Absent: it is.")
    free_mib: Count | None = Field(default=None, alias="freeMiB", description="Free memory, MiB.")
    total_mib: Count | None = Field(default=None, alias="totalMiB", description="Memory in all, MiB.")
    utilization_percent: float | None = Field(default=None, description="Utilisation, percent.")
    enabled: bool = Field(description="Whether the spec and the local switch lend the resource.")
    pressure: PressureStatus | None = Field(default=None, description="The owner's load; GPUs only.")


class UpstreamStatus(Report):
    """One upstream as last seen."""

    name: ShortText = Field(description="Name of the upstream.")
    dialect: ShortText = Field(description="API of the server.")
    port: Annotated[int, Field(ge=1, le=65_535)] = Field(description="Port that the agent listens on.")
    bound: bool = Field(description="Whether the agent listens on that port.")
    lendable: bool = Field(description="Whether a request would be admitted now, own work aside.")
    reason: LongText | None = Field(default=None, description="Reason code of the refusal. Absent: lendable.")
    active: Count = Field(default=0, description="Jobs that run.")
    held: Count = Field(default=0, description="Jobs whose end is not proved.")
    models: ModelList = Field(
        default_factory=list, description="Models that the server has loaded; at most 64."
    )
    listener: ListenerState = Field(
        default="unknown", description="Whether the server can be reached past the agent."
    )
    unseen_gpu_work: bool = Field(
        default=False, description="Admitted work uses the GPU outside the server's process tree."
    )
    priority_scheduling: bool = Field(default=False, description="The server schedules by priority.")


class AgentStatus(Report):
    """Everything the agent reports, as it reports it: `status.agent` and the `agent` of `GET /status`."""

    version: ShortText = Field(description="Version of the agent.")
    config_digest: ShortText | None = Field(
        default=None, description="Digest of the configuration that runs. Absent: none."
    )
    clock_skew_seconds: float | None = Field(
        default=None, description="How far the machine's clock is ahead of the API server's, seconds."
    )
    address: ShortText | None = Field(default=None, description="Address that borrowers reach.")
    platform: ShortText | None = Field(default=None, description="linux, windows or macos.")
    summary: SummaryStatus = Field(default_factory=SummaryStatus, description="The columns of kubectl get.")
    lending: LendingStatus = Field(description="Whether the switches allow lending.")
    resources: list[ResourceStatus] = Field(
        default_factory=list, max_length=32, description="Resources as last measured."
    )
    upstreams: list[UpstreamStatus] = Field(
        default_factory=list, max_length=64, description="Upstreams as last seen."
    )


class Condition(Report):
    """A condition in the form of the Kubernetes API."""

    type: Annotated[str, Field(max_length=316)] = Field(description="Name of the condition.")
    status: ConditionStatus = Field(description="True, False or Unknown.")
    reason: ShortText = Field(description="Reason in CamelCase.")
    message: Annotated[str, Field(max_length=32_768)] = Field(
        default="", description="Explanation for people."
    )
    last_transition_time: ShortText = Field(description="RFC 3339 time of the last change of status.")
    observed_generation: Count | None = Field(default=None, description="Generation that was judged.")


class EndpointStatus(Report):
    """An endpoint that the operator put into a Service."""

    service: ShortText = Field(description="Name of the Service.")
    upstream: ShortText = Field(description="Name of the upstream.")
    address: ShortText = Field(description="IP address of the endpoint.")
    port: Annotated[int, Field(ge=1, le=65_535)] = Field(description="Port of the endpoint.")
    ready: bool = Field(description="Whether it gets traffic.")


class LendingHostStatus(Report):
    """The status of a LendingHost; agent and operator each own their part."""

    observed_generation: Count | None = Field(
        default=None, description="Generation of the spec that the operator acted upon."
    )
    last_seen: ShortText | None = Field(
        default=None, description="RFC 3339 time of the lost agent's last sign. Absent: connected."
    )
    agent: AgentStatus | None = Field(default=None, description="The agent's last report.")
    endpoints: list[EndpointStatus] = Field(
        default_factory=list, max_length=128, description="Endpoints in Services; at most 128."
    )
    conditions: list[Condition] = Field(
        default_factory=list, max_length=16, description="Conditions, one of each type."
    )
