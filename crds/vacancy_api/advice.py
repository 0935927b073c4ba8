"""What a valid manifest will do that its author may not expect. Never an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_api.problems import FieldError
from vacancy_api.spec_upstreams import parse_target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vacancy_api.lending_host import LendingHost, LendingHostSpec
    from vacancy_api.spec_access import AccessSpec
    from vacancy_api.spec_upstreams import UpstreamSpec


def advice(host: LendingHost) -> list[FieldError]:
    """What to know about a manifest before it is used, with the path it is about."""
    spec = host.spec
    found = [*_lends_nothing(spec), *_access(spec.access), *_sharing(spec), *_unloaded_by_others(spec)]
    for index, item in enumerate(spec.upstreams):
        found += [
            FieldError(f"spec.upstreams[{index}]{path}", message) for path, message in _upstream(item, spec)
        ]
    return found


def _lends_nothing(spec: LendingHostSpec) -> Iterator[FieldError]:
    if not spec.upstreams:
        yield FieldError("spec.upstreams", "there is none: nothing is lent")
    if not spec.lending:
        yield FieldError("spec.lending", "is false: nothing is lent")
    if spec.schedule is not None and not spec.schedule.windows:
        yield FieldError("spec.schedule.windows", "is empty: nothing is ever lent")
    named = {name for item in spec.upstreams for name in (item.resource, *item.also_requires)}
    for index, resource in enumerate(spec.resources):
        if resource.name not in named:
            yield FieldError(f"spec.resources[{index}]", f"no upstream uses {resource.name!r}")
        elif not resource.enabled:
            yield FieldError(
                f"spec.resources[{index}].enabled", f"is false: upstreams that use {resource.name!r} refuse"
            )


def _access(access: AccessSpec) -> Iterator[FieldError]:
    if access.listen is not None and (access.listen.startswith("127.") or access.listen == "::1"):
        yield FieldError(
            "spec.access.listen", f"is {access.listen}: only this machine can borrow; a cluster cannot"
        )
    if access.allow_unauthenticated_remote:
        yield FieldError(
            "spec.access.allowUnauthenticatedRemote",
            "is true: everybody who reaches this machine can use it without a token",
        )


def _sharing(spec: LendingHostSpec) -> Iterator[FieldError]:
    """Two names for the host's memory or processors are not two of them."""
    for kind in ("memory", "cpu"):
        same = [index for index, item in enumerate(spec.resources) if item.type == kind]
        for index in same[1:]:
            yield FieldError(
                f"spec.resources[{index}]",
                f"is the host's {kind} once more: upstreams on different names of it run at the same time",
            )


def _unloaded_by_others(spec: LendingHostSpec) -> Iterator[FieldError]:
    """A server has one memory, whatever the upstreams before it say of the owner."""
    for index, item in enumerate(spec.upstreams):
        for other in spec.upstreams:
            same = parse_target(other.target) == parse_target(item.target)
            if same and item.owner_scope == "resource" and other.owner_scope == "host" and other.yields:
                yield FieldError(
                    f"spec.upstreams[{index}].target",
                    f"is also that of {other.name!r}, which unloads the server when the owner returns",
                )


def _upstream(item: UpstreamSpec, spec: LendingHostSpec) -> Iterator[tuple[str, str]]:
    unguarded = {
        resource.name
        for resource in spec.resources
        if resource.type != "cpu" and resource.capacity.min_free_mib == 0
    }
    target = parse_target(item.target)
    if item.dialect == "comfyui":
        yield (
            "",
            "a ComfyUI must be dedicated to borrowed work: borrowers read all of its files and progress, "
            "and its models are unloaded when the owner returns",
        )
    if item.management == "allow":
        yield ".management", "is allow: borrowers may load, delete and inspect everything on this server"
    if item.forward_authorization and target is not None and target.scheme == "http":
        yield ".forwardAuthorization", "sends the borrower's credential over plain HTTP"
    if item.owner_scope == "resource":
        yield ".ownerScope", "is resource: this upstream keeps lending while the owner is at the machine"
    if item.assume_ended_after is not None:
        yield (
            ".assumeEndedAfter",
            f"frees a resource {item.assume_ended_after} after a broken request, even if it is still at work",
        )
    if item.resource in unguarded and item.models.default.min_free_mib == 0:
        yield (
            ".models.default.minFreeMiB",
            "is 0, and so is the resource's: a model without an item is admitted however little is free",
        )
    for index, model in enumerate(item.models.items):
        if item.resource in unguarded and model.min_free_mib == 0:
            yield f".models.items[{index}].minFreeMiB", "is 0: the model is admitted however little is free"
