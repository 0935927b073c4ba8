"""LendingHost manifests: a file or an object of the API server in, a valid model or every error out.

Fields are judged by pydantic, which stops before it looks at what must hold between them once a field is
wrong. So on failure the cross checks run again over whatever the file says: nobody fixes one error to be
told the next.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from vacancy_api.cross_checks import cross_check
from vacancy_api.lending_host import API_VERSION, KIND, LendingHost, Metadata
from vacancy_api.problems import ContractInvalid, FieldError, path_of, shown
from vacancy_api.wording import json_names, unknown_field, word
from vacancy_api.yaml_document import MAX_BYTES, Document, read_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vacancy_api.loose import Loc

__all__ = ["FieldError", "ManifestInvalid", "load_manifest", "parse_manifest"]

_OBJECT_META = frozenset(
    {
        "generateName",
        "selfLink",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "ownerReferences",
        "finalizers",
        "managedFields",
    }
)
"""What Kubernetes keeps in metadata beside what `Metadata` reads."""

_MOST_WORDED = 500
"""Past so many errors of fields the file is something else altogether; wording each only takes time."""


class ManifestInvalid(ContractInvalid):
    """The manifest is refused; `errors` names every reason with its path."""


def load_manifest(source: str | bytes | Path) -> LendingHost:
    """Reads a manifest: the content of a file (YAML or JSON), or the path of one.

    Raises:
        ManifestInvalid: The file cannot be read or is not a valid LendingHost.
    """
    content = _read(source) if isinstance(source, Path) else source
    return _judge(read_document(content))


def parse_manifest(data: Mapping[str, Any]) -> LendingHost:
    """Judges an object that is already plain data, such as the API server's answer.

    Raises:
        ManifestInvalid: It is not a valid LendingHost.
    """
    return _judge(Document(data=dict(data)))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ManifestInvalid([FieldError("", f"cannot be read: {error.strerror or error}")]) from error


def _judge(document: Document) -> LendingHost:
    data = document.data
    if data is None and document.errors:
        raise ManifestInvalid(document.errors)
    if not isinstance(data, dict):
        raise ManifestInvalid([*document.errors, FieldError("", f"must be a mapping; got {shown(data)}")])
    foreign = list(_foreign(data, document))
    if foreign:
        raise ManifestInvalid([*document.errors, *foreign])
    errors = [*document.errors, *_metadata_errors(data.get("metadata"), document)]
    try:
        host = LendingHost.model_validate({key: data[key] for key in data if key != "status"})
    except ValidationError as error:
        errors += _field_errors(error, data, document)
        raise ManifestInvalid(errors) from error
    if errors:
        raise ManifestInvalid(errors)
    return host


def _foreign(data: dict[str, Any], document: Document) -> Iterator[FieldError]:
    """Errors of an object that is of another API altogether; its fields are not worth a word each."""
    version, kind = data.get("apiVersion"), data.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return
    if version.startswith("vacancy.dev/") or kind.lower() == KIND.lower():
        return
    for name, value, expected in (("apiVersion", version, API_VERSION), ("kind", kind, KIND)):
        yield FieldError(name, f"must be {expected}; got {shown(value)}", document.line_of((name,)))


def _metadata_errors(metadata: object, document: Document) -> Iterator[FieldError]:
    if not isinstance(metadata, dict):
        return
    for key in metadata:
        if key not in json_names(Metadata) and key not in _OBJECT_META:
            loc = ("metadata", str(key))
            yield FieldError(path_of(loc), unknown_field(LendingHost, loc), document.line_of(loc))


def _field_errors(error: ValidationError, data: dict[str, Any], document: Document) -> list[FieldError]:
    found: dict[tuple[str, str], FieldError] = {}
    unreadable = {error.path for error in document.errors}

    def add(loc: Loc, message: str) -> None:
        path = path_of(loc)
        if path in unreadable:
            return
        found.setdefault((path, message), FieldError(path, message, document.line_of(loc)))

    details = error.errors(include_url=False)
    for detail in details[:_MOST_WORDED]:
        loc = detail["loc"]
        add(loc, word(detail, LendingHost, document.spelled.get(loc)))
    for problem in cross_check(data.get("spec")):
        add(("spec", *problem.loc), problem.message)
    in_order = sorted(found.values(), key=lambda item: item.line or 0)
    more = len(details) - _MOST_WORDED
    return [*in_order, FieldError("", f"and {more} more errors")] if more > 0 else in_order
