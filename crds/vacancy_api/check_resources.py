"""What must hold within and between the resources of a host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from vacancy_api.loose import Problem, entries, mapping, number, repeated, text

_GPU = ("nvidia", "amd")
_KINDS = ("nvidia", "amd", "memory", "cpu")
Resource = Mapping[object, object]


def check_resources(spec: object) -> Iterator[Problem]:
    """Every problem of the resources, as locations counted from the spec."""
    found = entries(spec, "resources")
    for index, name in repeated((index, text(item, "name")) for index, item in found):
        yield Problem(
            ("resources", index, "name"), f"{name!r} is taken by another resource: give each its own name"
        )
    yield from _devices(found)
    for index, item in found:
        kind = text(item, "type")
        if kind not in _KINDS:
            continue
        checks = (*_gpu_only(item, kind), *_capacity(item, kind), *_pressure(item))
        yield from (Problem(("resources", index, *problem.loc), problem.message) for problem in checks)


def _devices(found: list[tuple[int, Resource]]) -> Iterator[Problem]:
    by_kind: dict[str, list[tuple[int, Resource]]] = defaultdict(list)
    for index, item in found:
        by_kind[text(item, "type") or ""].append((index, item))
    for kind in _GPU:
        several = by_kind[kind]
        for index, item in several:
            if len(several) > 1 and item.get("device") is None:
                yield Problem(
                    ("resources", index, "device"),
                    f"is required where more than one resource has type {kind}: "
                    "name the GPU by its UUID or PCI address",
                )
        devices = ((index, (text(item, "device") or "").lower() or None) for index, item in several)
        for index, _ in repeated(devices):
            yield Problem(
                ("resources", index, "device"),
                "is the device of another resource too: declare each GPU once",
            )


def _gpu_only(item: Resource, kind: str) -> Iterator[Problem]:
    if kind in _GPU:
        return
    if item.get("device") is not None:
        yield Problem(("device",), f"is only for nvidia and amd: remove it from this {kind} resource")
    if text(item, "memory") == "unified":
        yield Problem(("memory",), f"unified is only for nvidia and amd: remove it from this {kind} resource")
    if item.get("pressure") is not None:
        yield Problem(("pressure",), f"is only for nvidia and amd: remove it from this {kind} resource")


def _capacity(item: Resource, kind: str) -> Iterator[Problem]:
    capacity = mapping(item, "capacity")
    if kind == "cpu" and (number(capacity, "minFreeMiB") or 0) > 0:
        yield Problem(("capacity", "minFreeMiB"), "is not for cpu: use maxUtilizationPercent")
    if kind != "cpu" and capacity.get("maxUtilizationPercent") is not None:
        yield Problem(("capacity", "maxUtilizationPercent"), f"is only for cpu: use minFreeMiB for {kind}")


def _pressure(item: Resource) -> Iterator[Problem]:
    pressure = mapping(item, "pressure")
    mode, threshold = pressure.get("mode", "learned"), pressure.get("thresholdPercent")
    if mode == "fixed" and threshold is None:
        yield Problem(
            ("pressure", "thresholdPercent"), "is required with mode fixed: a percentage from 1 to 100"
        )
    if mode in ("learned", "off") and threshold is not None:
        yield Problem(
            ("pressure", "thresholdPercent"),
            f"has no effect with mode {mode}: remove it, or write mode: fixed",
        )
