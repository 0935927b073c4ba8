"""What a LendingHost says about the machine and its owner: presence, schedule, cadence, where it stands."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vacancy_api.fields import (
    Contract,
    DayTime,
    MacAddress,
    ProgramName,
    ReachableIpAddress,
    TimeZone,
    duration_between,
)

Day = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
PresenceSource = Literal["auto", "headless"]

IdleAfter = Annotated[str, duration_between("1s", "24h")]
OwnerRelease = Annotated[str, duration_between("0s", "24h")]
Interval = Annotated[str, duration_between("200ms", "60s")]

EVERY_DAY: tuple[Day, ...] = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class ExternalSpec(Contract):
    """A machine outside the cluster, such as a gaming box."""

    address: ReachableIpAddress = Field(description="IP address at which the cluster reaches the machine.")
    wake_on_lan: MacAddress | None = Field(
        default=None,
        description="MAC address that a wake-on-LAN packet is sent to. Absent: the machine is never woken.",
    )


class WindowSpec(Contract):
    """One window of the week during which lending is allowed."""

    days: list[Day] = Field(
        default_factory=lambda: list(EVERY_DAY),
        min_length=1,
        max_length=7,
        description="Days on which the window starts, Mon to Sun. Default: every day.",
    )
    start: DayTime = Field(alias="from", description="Local time at which the window opens, HH:MM.")
    end: DayTime = Field(
        alias="to",
        description="Local time at which the window closes, HH:MM. Not later than `from`: the next day.",
    )


class ScheduleSpec(Contract):
    """When lending is allowed. A pause wins over a window."""

    time_zone: TimeZone = Field(description="IANA time zone that the windows are written in.")
    windows: list[WindowSpec] = Field(
        max_length=32,
        description="Windows during which lending is allowed; at most 32. An empty list: never.",
    )


class ForegroundSpec(Contract):
    """Foreground applications that count as the owner, where the platform reports them (Windows)."""

    full_screen: bool = Field(
        default=True,
        description="A full-screen application counts as the owner even without input. Default true.",
    )
    applications: list[ProgramName] = Field(
        default_factory=list,
        max_length=64,
        description=(
            "Programs that count as the owner while they are in the foreground; at most 64. Default none."
        ),
    )


class OwnerSpec(Contract):
    """How the presence of the machine's owner is judged."""

    presence: PresenceSource = Field(
        default="auto",
        description=(
            "auto: sessions of this machine are watched. headless: nobody ever sits here. Default auto."
        ),
    )
    idle_after: IdleAfter = Field(
        default="10m",
        description="Time without input after which a session counts as idle; 1s to 24h. Default 10m.",
    )
    release_after: OwnerRelease = Field(
        default="5m",
        description="Time the owner must have been away before lending resumes; 0s to 24h. Default 5m.",
    )
    processes: list[ProgramName] = Field(
        default_factory=list,
        max_length=64,
        description="Programs that count as the owner while they run; at most 64. Default none.",
    )
    foreground: ForegroundSpec = Field(
        default_factory=ForegroundSpec,
        description="Foreground applications that count as the owner, where the platform reports them.",
    )


class SamplingSpec(Contract):
    """Cadence of the observations."""

    interval: Interval = Field(
        default="3s",
        description="Time between readings of capacity and presence; 200ms to 60s. Default 3s.",
    )
    pressure_interval: Interval = Field(
        default="2s",
        description="Time between readings of the owner's GPU load; 200ms to 60s. Default 2s.",
    )
