"""What a LendingHost lends: GPUs, memory, processors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vacancy_api.fields import Contract, DnsLabel, GpuDevice, duration_between

ResourceKind = Literal["nvidia", "amd", "memory", "cpu"]
MemoryKind = Literal["dedicated", "unified"]
PressureKind = Literal["learned", "fixed", "off"]

EngageAfter = Annotated[str, duration_between("0s", "10m")]
PressureRelease = Annotated[str, duration_between("0s", "1h")]

MAX_MIB = 67_108_864
"""64 TiB: past any machine there is, and small enough for exact arithmetic everywhere."""


class CapacitySpec(Contract):
    """What the owner keeps of a resource."""

    min_free_mib: int = Field(
        default=0,
        alias="minFreeMiB",
        ge=0,
        le=MAX_MIB,
        description=(
            "Memory that must be free before work is admitted, MiB; 0 to 67108864. Not for cpu. Default 0."
        ),
    )
    max_utilization_percent: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description=(
            "Processor load above which work is refused, percent; 1 to 100. Only for cpu. Absent: no bound."
        ),
    )


class PressureSpec(Contract):
    """How the owner's load on a GPU is judged. Written out, it is required: unreadable load refuses."""

    mode: PressureKind = Field(
        default="learned",
        description=(
            "learned: from the GPU's usual load. fixed: thresholdPercent. off: not judged. Default learned."
        ),
    )
    threshold_percent: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description=(
            "Owner's load that refuses work, percent; 1 to 100. Needed with mode fixed, and only there."
        ),
    )
    cap_percent: int = Field(
        default=40,
        ge=10,
        le=100,
        description="Highest threshold that may be learned, percent; 10 to 100. Default 40.",
    )
    engage_after: EngageAfter = Field(
        default="3s",
        description=(
            "Time the load must stay at or above the threshold to refuse work; 0s to 10m. Default 3s."
        ),
    )
    release_after: PressureRelease = Field(
        default="30s",
        description="Time the load must stay below the threshold to lend again; 0s to 1h. Default 30s.",
    )


class ResourceSpec(Contract):
    """One part of the machine that is lent as a unit."""

    name: DnsLabel = Field(description="Name that upstreams refer to; a DNS label, unique in the host.")
    type: ResourceKind = Field(description="nvidia or amd (a GPU's memory), memory (of the host), or cpu.")
    enabled: bool = Field(default=True, description="Whether the resource is lent at all. Default true.")
    device: GpuDevice | None = Field(
        default=None,
        description="GPU as UUID or PCI address. Needed when two resources have the same GPU type.",
    )
    memory: MemoryKind = Field(
        default="dedicated",
        description="dedicated: the GPU's own. unified: shared with the host; GPUs only. Default dedicated.",
    )
    capacity: CapacitySpec = Field(
        default_factory=CapacitySpec, description="What the owner keeps of the resource."
    )
    pressure: PressureSpec | None = Field(
        default=None,
        description=(
            "How the owner's load on the GPU is judged; GPUs only. Absent: learned where the platform can "
            "tell the owner's load, else off. Written out: required, and unreadable load refuses work."
        ),
    )
