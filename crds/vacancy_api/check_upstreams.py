"""What must hold within and between the upstreams of a host, and between them and its resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from vacancy_api.loose import Problem, entries, mapping, number, repeated, text, texts

YIELDING: frozenset[str] = frozenset({"ollama", "comfyui"})
"""Dialects whose servers can be asked to unload: `yieldOnVeto` is true there and refused elsewhere."""
_DIALECTS = YIELDING | {"llamacpp", "openai", "chatterbox"}
_RESIDENT_OVER = "is more than minFreeMiB: a loaded model needs no more than one that has to be loaded"
Upstream = Mapping[object, object]


def check_upstreams(spec: object) -> Iterator[Problem]:
    """Every problem of the upstreams, as locations counted from the spec."""
    found = entries(spec, "upstreams")
    for index, name in repeated((index, text(item, "name")) for index, item in found):
        yield Problem(
            ("upstreams", index, "name"), f"{name!r} is taken by another upstream: give each its own name"
        )
    names = _resource_names(spec)
    for index, item in found:
        checks = (*_references(item, names), *_dialect(item), *_credentials(item), *_models(item))
        yield from (Problem(("upstreams", index, *problem.loc), problem.message) for problem in checks)


def _resource_names(spec: object) -> set[str] | None:
    """The declared names; None where some cannot be read, so that nothing can be called missing."""
    declared = spec.get("resources", []) if isinstance(spec, Mapping) else None
    if not isinstance(declared, list):
        return None
    names = {text(item, "name") for _, item in entries(spec, "resources")}
    if None in names or len(entries(spec, "resources")) != len(declared):
        return None
    return {name for name in names if name is not None}


def _references(item: Upstream, names: set[str] | None) -> Iterator[Problem]:
    primary, further = text(item, "resource"), texts(item, "alsoRequires")
    if primary is not None and names is not None and primary not in names:
        yield Problem(("resource",), _unknown_resource(primary, names))
    for index, name in further:
        if names is not None and name not in names:
            yield Problem(("alsoRequires", index), _unknown_resource(name, names))
        if name == primary:
            yield Problem(("alsoRequires", index), f"{name!r} is already the upstream's resource: remove it")
    for index, name in repeated(further):
        yield Problem(("alsoRequires", index), f"{name!r} is listed twice: remove one")


def _unknown_resource(name: str, names: set[str]) -> str:
    near = get_close_matches(name, sorted(names), n=1)
    if near:
        return f"no resource is named {name!r}: did you mean {near[0]!r}?"
    known = ", ".join(sorted(names)) or "none"
    return f"no resource is named {name!r}: declare it in spec.resources, or name one of: {known}"


def _dialect(item: Upstream) -> Iterator[Problem]:
    dialect = text(item, "dialect")
    if dialect not in _DIALECTS:
        return
    if item.get("yieldOnVeto") is True and dialect not in YIELDING:
        yield Problem(
            ("yieldOnVeto",),
            f"a {dialect} server cannot be asked to unload: remove it (ollama and comfyui can)",
        )
    if item.get("priorityScheduling") is True and dialect != "openai":
        yield Problem(("priorityScheduling",), f"is only for vLLM (dialect openai): remove it from {dialect}")


def _credentials(item: Upstream) -> Iterator[Problem]:
    if item.get("forwardAuthorization") is True and item.get("credentialSecretRef") is not None:
        yield Problem(
            ("forwardAuthorization",),
            "contradicts credentialSecretRef, which replaces the borrower's header: keep one of the two",
        )


def _models(item: Upstream) -> Iterator[Problem]:
    models = mapping(item, "models")
    items = entries(models, "items")
    for index, name in repeated((index, text(model, "name")) for index, model in items):
        yield Problem(
            ("models", "items", index, "name"), f"{name!r} is listed twice: merge the two items into one"
        )
    if _resident_over(mapping(models, "default")):
        yield Problem(("models", "default", "residentMinFreeMiB"), _RESIDENT_OVER)
    for index, model in items:
        if _resident_over(model):
            yield Problem(("models", "items", index, "residentMinFreeMiB"), _RESIDENT_OVER)


def _resident_over(footprint: Mapping[object, object]) -> bool:
    resident = number(footprint, "residentMinFreeMiB")
    load = 0 if "minFreeMiB" not in footprint else number(footprint, "minFreeMiB")
    return resident is not None and load is not None and resident > load
