"""Everything that must hold between the fields of a LendingHost spec, as one pass over plain data.

The same rules become CEL rules of the custom resource; here they also judge manifests no API server has seen.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vacancy_api.check_resources import check_resources
from vacancy_api.check_upstreams import check_upstreams
from vacancy_api.loose import Problem, entries, mapping, number, repeated, text, texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OWN_TARGET = re.compile(r"https?://(?:localhost|127\.[0-9.]+|\[::1\]):([0-9]{1,5})\Z", re.IGNORECASE)
_DEFAULT_API_PORT = 8470
_DEFAULT_BODY_MIB = 64


def cross_check(spec: object) -> list[Problem]:
    """Every problem between fields of `spec` (JSON names), as far as its fields can be read."""
    return [
        *check_resources(spec),
        *check_upstreams(spec),
        *_ports(spec),
        *_loops(spec),
        *_schedule(spec),
        *_bodies(spec),
    ]


def _api_port(spec: object) -> int | None:
    access = mapping(spec, "access")
    return number(access, "apiPort") if "apiPort" in access else _DEFAULT_API_PORT


def _ports(spec: object) -> Iterator[Problem]:
    taken: dict[int, str] = {}
    api_port = _api_port(spec)
    if api_port is not None:
        taken[api_port] = "the API (spec.access.apiPort)"
    for index, item in entries(spec, "upstreams"):
        port = number(item, "port")
        if port is None:
            continue
        if port in taken:
            yield Problem(
                ("upstreams", index, "port"),
                f"{port} is already the port of {taken[port]}: choose another",
            )
        else:
            taken[port] = f"spec.upstreams[{index}]"


def _loops(spec: object) -> Iterator[Problem]:
    """A target that is a listener of the agent would have it forward to itself."""
    own = {number(item, "port") for _, item in entries(spec, "upstreams")} | {_api_port(spec)}
    for index, item in entries(spec, "upstreams"):
        match = _OWN_TARGET.match(text(item, "target") or "")
        if match is not None and int(match[1]) in own:
            yield Problem(
                ("upstreams", index, "target"),
                f"port {match[1]} of this machine is one of the agent's own: write the port of the AI server",
            )


def _schedule(spec: object) -> Iterator[Problem]:
    for index, window in entries(mapping(spec, "schedule"), "windows"):
        for place, day in repeated(texts(window, "days")):
            yield Problem(
                ("schedule", "windows", index, "days", place), f"{day!r} is listed twice: remove one"
            )


def _bodies(spec: object) -> Iterator[Problem]:
    limits: Mapping[object, object] = mapping(spec, "limits")
    buffered = number(limits, "maxBufferedBodyMiB")
    largest = number(limits, "maxRequestBodyMiB") if "maxRequestBodyMiB" in limits else _DEFAULT_BODY_MIB
    if buffered is not None and largest is not None and buffered < largest:
        yield Problem(
            ("limits", "maxBufferedBodyMiB"),
            f"is less than maxRequestBodyMiB ({largest}): such a body could never be taken; "
            "raise it or remove it",
        )
