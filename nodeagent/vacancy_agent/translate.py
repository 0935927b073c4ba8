"""From the contract to the frozen settings of the core: once per configuration, and nowhere else.

Invariant: every field of a LendingHost spec ends up here in a setting, or in `NOT_THE_AGENTS` with the reason
why the agent has no use for it. A test changes each field and fails where nothing changes on this side, so a
field cannot be documented, accepted and then ignored.
"""

from __future__ import annotations

from datetime import datetime, time
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from vacancy_agent.core.facts import MiB, Percent, Seconds, WallTime
from vacancy_agent.core.settings import (
    AccessSettings,
    Dialect,
    Footprint,
    HostSettings,
    LendingSettings,
    Limits,
    OnOwnerReturn,
    OwnerScope,
    OwnerSettings,
    PressureMode,
    PressureSettings,
    ResourceSettings,
    ResourceType,
    SamplingSettings,
    ScheduleWindow,
    SecretRef,
    Target,
    UpstreamSettings,
)
from vacancy_api import durations
from vacancy_api.spec_host import EVERY_DAY
from vacancy_api.spec_upstreams import parse_target
from vacancy_dialects import canonical_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vacancy_api.lending_host import LendingHostSpec
    from vacancy_api.spec_access import AccessSpec, LimitsSpec
    from vacancy_api.spec_host import OwnerSpec, ScheduleSpec
    from vacancy_api.spec_resources import PressureSpec, ResourceSpec
    from vacancy_api.spec_upstreams import FootprintSpec, UpstreamSpec

NOT_THE_AGENTS: Final = MappingProxyType(
    {
        "external.address": "the operator puts it into EndpointSlices",
        "external.wakeOnLan": "a sleeping machine cannot wake itself",
        "upstreams[].service": "the operator fronts the upstream with it",
    }
)
"""Fields of the spec that the agent has no use for, and why."""

LISTEN_ALONE: Final = "127.0.0.1"
_GPU = (ResourceType.NVIDIA, ResourceType.AMD)


def host_settings(spec: LendingHostSpec) -> HostSettings:
    """What the pure core needs of a spec."""
    return HostSettings(
        lending=_lending(spec),
        owner=_owner(spec.owner),
        sampling=SamplingSettings(
            interval=_seconds(spec.sampling.interval),
            pressure_interval=_seconds(spec.sampling.pressure_interval),
        ),
        resources=MappingProxyType({item.name: _resource(item) for item in spec.resources}),
        upstreams=MappingProxyType({item.name: _upstream(item) for item in spec.upstreams}),
    )


def access_settings(access: AccessSpec) -> AccessSettings:
    """Where the agent listens."""
    return AccessSettings(
        listen=access.listen or LISTEN_ALONE,
        api_port=access.api_port,
        trust_loopback=access.trust_loopback,
        allow_unauthenticated_remote=access.allow_unauthenticated_remote,
        tls_secret=access.tls.secret_ref.name if access.tls else None,
    )


def limits(spec: LimitsSpec) -> Limits:
    """The bounds of a listener in bytes and seconds."""
    return Limits(
        max_request_body=spec.max_request_body_mib << 20,
        max_buffered_body=spec.buffered_body_mib << 20,
        max_connections=spec.max_connections,
        max_tunnels=spec.max_tunnels,
        header_read=_seconds(spec.header_read_timeout),
        body_read=_seconds(spec.body_read_timeout),
        body_idle=_seconds(spec.body_idle_timeout),
        write_stall=_seconds(spec.write_stall_timeout),
        keep_alive=_seconds(spec.keep_alive_timeout),
        tunnel_idle=_seconds(spec.tunnel_idle_timeout),
    )


def _seconds(text: str) -> Seconds:
    return Seconds(durations.seconds(text))


def _lending(spec: LendingHostSpec) -> LendingSettings:
    until = spec.paused_until
    return LendingSettings(
        enabled=spec.lending,
        paused_until=None if until is None else WallTime(datetime.fromisoformat(until).timestamp()),
        time_zone=spec.schedule.time_zone if spec.schedule else "UTC",
        windows=_windows(spec.schedule) if spec.schedule else None,
    )


def _windows(schedule: ScheduleSpec) -> tuple[ScheduleWindow, ...]:
    return tuple(
        ScheduleWindow(
            days=frozenset(EVERY_DAY.index(day) for day in window.days),
            start=time.fromisoformat(window.start),
            end=time.fromisoformat(window.end),
        )
        for window in schedule.windows
    )


def _owner(owner: OwnerSpec) -> OwnerSettings:
    return OwnerSettings(
        headless=owner.presence == "headless",
        idle_after=_seconds(owner.idle_after),
        release_after=_seconds(owner.release_after),
        processes=tuple(owner.processes),
        foreground_full_screen=owner.foreground.full_screen,
        foreground_applications=tuple(owner.foreground.applications),
    )


def _resource(item: ResourceSpec) -> ResourceSettings:
    kind = ResourceType(item.type)
    most = item.capacity.max_utilization_percent
    return ResourceSettings(
        name=item.name,
        type=kind,
        enabled=item.enabled,
        device=item.device,
        unified=item.memory == "unified",
        min_free=MiB(item.capacity.min_free_mib),
        max_utilization=None if most is None else Percent(float(most)),
        pressure=_pressure(item.pressure, kind),
    )


def _pressure(pressure: PressureSpec | None, kind: ResourceType) -> PressureSettings:
    if pressure is None:
        return PressureSettings(mode=PressureMode.LEARNED if kind in _GPU else PressureMode.OFF)
    mode = PressureMode(pressure.mode)
    threshold = pressure.threshold_percent
    return PressureSettings(
        mode=mode,
        required=mode is not PressureMode.OFF,
        threshold=None if threshold is None else Percent(float(threshold)),
        cap=Percent(float(pressure.cap_percent)),
        engage_after=_seconds(pressure.engage_after),
        release_after=_seconds(pressure.release_after),
    )


def _upstream(item: UpstreamSpec) -> UpstreamSettings:
    credential = item.credential_secret_ref
    assume = item.assume_ended_after
    return UpstreamSettings(
        name=item.name,
        dialect=Dialect(item.dialect),
        target=_target(item.target),
        port=item.port,
        requires=(item.resource, *item.also_requires),
        owner_scope=OwnerScope(item.owner_scope),
        management_allowed=item.management == "allow",
        on_owner_return=OnOwnerReturn(item.on_owner_return),
        drain_timeout=_seconds(item.drain_timeout),
        completion_timeout=_seconds(item.completion_timeout),
        assume_ended_after=None if assume is None else _seconds(assume),
        yield_on_veto=item.yields,
        slots=item.slots,
        default_footprint=_footprint(item.models.default),
        footprints=MappingProxyType(_footprints(item)),
        forward_authorization=item.forward_authorization,
        priority_scheduling=item.priority_scheduling,
        credential=SecretRef(credential.name, credential.key) if credential else None,
    )


def _footprints(item: UpstreamSpec) -> dict[str, Footprint]:
    """By the names that requests are judged to ask for."""
    return {canonical_model(item.dialect, model.name): _footprint(model) for model in item.models.items}


def models_named_twice(spec: LendingHostSpec) -> Iterator[tuple[str, str]]:
    """Path and problem of each item that names a model which an earlier one names in another spelling."""
    for index, upstream in enumerate(spec.upstreams):
        first: dict[str, str] = {}
        for place, model in enumerate(upstream.models.items):
            name = canonical_model(upstream.dialect, model.name)
            if name in first:
                path = f"spec.upstreams[{index}].models.items[{place}].name"
                yield (
                    path,
                    f"{model.name!r} and {first[name]!r} are both {name} to {upstream.dialect}: keep one",
                )
            first.setdefault(name, model.name)


def _target(text: str) -> Target:
    url = parse_target(text)
    if url is None:
        raise ValueError(f"{text!r} was not validated before it was translated")
    return Target(url.scheme, url.host, url.port)


def _footprint(footprint: FootprintSpec) -> Footprint:
    return Footprint(MiB(footprint.min_free_mib), MiB(footprint.resident_min_free_mib))
