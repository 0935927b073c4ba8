"""Configuration as the pure core sees it: frozen dataclasses, translated once from the contract."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import MiB, Percent, Seconds, WallTime

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import time


class ResourceType(StrEnum):
    """What a resource is made of."""

    NVIDIA = "nvidia"
    AMD = "amd"
    MEMORY = "memory"
    CPU = "cpu"


class PressureMode(StrEnum):
    """How the owner's load on a resource is judged."""

    LEARNED = "learned"
    FIXED = "fixed"
    OFF = "off"


class OwnerScope(StrEnum):
    """Whether the owner's presence touches an upstream (`host`) or only its resources do (`resource`)."""

    HOST = "host"
    RESOURCE = "resource"


class OnOwnerReturn(StrEnum):
    """What happens to accepted work when the owner returns."""

    DRAIN = "drain"
    CANCEL = "cancel"
    FINISH = "finish"


class Dialect(StrEnum):
    """The kind of server behind an upstream."""

    OLLAMA = "ollama"
    LLAMACPP = "llamacpp"
    OPENAI = "openai"
    COMFYUI = "comfyui"
    CHATTERBOX = "chatterbox"


@dataclass(frozen=True, slots=True)
class PressureSettings:
    """Judgement of the owner's load on one resource."""

    mode: PressureMode = PressureMode.OFF
    required: bool = False
    """The block was written out in the manifest: where it cannot be sampled, it fails closed."""
    threshold: Percent | None = None
    cap: Percent = Percent(40.0)
    engage_after: Seconds = Seconds(3.0)
    release_after: Seconds = Seconds(30.0)


@dataclass(frozen=True, slots=True)
class ResourceSettings:
    """One declared resource of the host."""

    name: str
    type: ResourceType
    enabled: bool = True
    device: str | None = None
    """UUID or PCI address as the manifest wrote it; None: the host's only device of the type."""
    unified: bool = False
    min_free: MiB = MiB(0)
    max_utilization: Percent | None = None
    pressure: PressureSettings = PressureSettings()


@dataclass(frozen=True, slots=True)
class Footprint:
    """Free memory that a request for a model needs, MiB."""

    min_free: MiB = MiB(0)
    resident_min_free: MiB = MiB(0)


@dataclass(frozen=True, slots=True)
class Target:
    """Where an upstream's server listens."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class SecretRef:
    """One value of a Secret; alone, the file `secrets/NAME/KEY` of the state directory."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """One local AI server and the listener in front of it."""

    name: str
    dialect: Dialect
    target: Target
    port: int
    requires: tuple[str, ...]
    """The primary resource first, then `alsoRequires` in order."""
    owner_scope: OwnerScope = OwnerScope.HOST
    management_allowed: bool = False
    on_owner_return: OnOwnerReturn = OnOwnerReturn.DRAIN
    drain_timeout: Seconds = Seconds(30.0)
    completion_timeout: Seconds = Seconds(600.0)
    assume_ended_after: Seconds | None = None
    yield_on_veto: bool = False
    slots: int = 1
    default_footprint: Footprint = Footprint()
    footprints: Mapping[str, Footprint] = field(default_factory=lambda: MappingProxyType({}))
    forward_authorization: bool = False
    priority_scheduling: bool = False
    credential: SecretRef | None = None
    """Bearer token that the agent itself presents to the server."""


@dataclass(frozen=True, slots=True)
class OwnerSettings:
    """How the owner's presence is judged."""

    headless: bool = False
    idle_after: Seconds = Seconds(600.0)
    release_after: Seconds = Seconds(300.0)
    processes: tuple[str, ...] = ()
    foreground_full_screen: bool = True
    """A full-screen application counts as the owner, where the platform reports one."""
    foreground_applications: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """Cadence of the observation loops."""

    interval: Seconds = Seconds(3.0)
    pressure_interval: Seconds = Seconds(2.0)

    @property
    def stale_after(self) -> Seconds:
        """Age past which a capacity or presence reading refuses: four polls, at least 15 s."""
        return Seconds(max(4 * self.interval, 15.0))


@dataclass(frozen=True, slots=True)
class ScheduleWindow:
    """Local times during which lending is allowed; `end <= start` crosses midnight."""

    days: frozenset[int]
    """Days on which the window starts; Monday is 0."""
    start: time
    end: time


@dataclass(frozen=True, slots=True)
class LendingSettings:
    """The switches of the specification."""

    enabled: bool = True
    paused_until: WallTime | None = None
    time_zone: str = "UTC"
    windows: tuple[ScheduleWindow, ...] | None = None
    """None: always; an empty tuple: never."""


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Everything the pure core needs of one LendingHost."""

    lending: LendingSettings
    owner: OwnerSettings
    sampling: SamplingSettings
    resources: Mapping[str, ResourceSettings]
    upstreams: Mapping[str, UpstreamSettings]


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Where the agent listens, and who gets in without a token."""

    listen: str = "127.0.0.1"
    api_port: int = 8470
    trust_loopback: bool = False
    allow_unauthenticated_remote: bool = False
    tls_secret: str | None = None
    """Secret with `tls.crt` and `tls.key`; None: plain HTTP."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one listener: sizes in bytes, times in seconds."""

    max_request_body: int = 64 << 20
    max_buffered_body: int = 256 << 20
    max_connections: int = 256
    max_tunnels: int = 16
    header_read: Seconds = Seconds(10.0)
    body_read: Seconds = Seconds(120.0)
    body_idle: Seconds = Seconds(20.0)
    write_stall: Seconds = Seconds(60.0)
    keep_alive: Seconds = Seconds(75.0)
    tunnel_idle: Seconds = Seconds(600.0)
