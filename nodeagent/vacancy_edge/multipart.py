"""The fields of a multipart form that decide something, read so that every server reads the same.

Invariant: a form is accepted only in the one plain spelling that all clients send (RFC 7578 without its
leniencies), and each watched field occurs at most once. What a lenient parser could take for a delimiter, a
field or another name is refused: bytes before the first delimiter or after the last, a delimiter after a bare
line feed, `name*=`, backslashes in a parameter, transfer encodings, another charset than UTF-8 (of a text
part, or of all by a field `_charset_`, which some servers follow). A general multipart library was rejected,
since it is lenient by purpose, as are the servers behind us.
"""

from __future__ import annotations

import re
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from vacancy_edge.jsonbody import fold
from vacancy_edge.refusal import Refusal
from vacancy_edge.refusals import ambiguous_body, bad_request

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MAX_PARTS: Final = 64
MAX_HEAD: Final = 4096
MAX_VALUE: Final = 1024
"""Bytes of a watched field: a model name, a flag."""

_TYPE: Final = re.compile(
    rb'multipart/form-data[ \t]*;[ \t]*boundary=(?:"([^"]*)"|([^ \t";,]*))', re.IGNORECASE
)
_BOUNDARY: Final = re.compile(rb"[0-9A-Za-z'()+_,./:=?-]{1,70}\Z")
_END_OF_HEAD: Final = re.compile(rb"\r\n\r\n")
_HEADER: Final = re.compile(rb"([A-Za-z0-9-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_DISPOSITION: Final = re.compile(
    rb'form-data((?:[ \t]*;[ \t]*[A-Za-z*]+=(?:"[^"\\]*"|[^ \t;"\\]+))*)', re.IGNORECASE
)
_PARAMETER: Final = re.compile(rb'([A-Za-z*]+)=(?:"([^"]*)"|([^ \t;"]+))')
_CHARSET: Final = re.compile(
    rb'charset[ \t]*=(?![ \t]*"?(?:utf-?8|us-ascii)"?[ \t]*(?:;|\Z))|charset\*', re.IGNORECASE
)
"""A charset that reads other text than UTF-8 does."""
_IDENTITY: Final = frozenset({b"7bit", b"8bit", b"binary"})
_KNOWN: Final = frozenset({b"name", b"filename", b"filename*"})


def boundary_of(content_type: bytes | None) -> bytes | None:
    """The boundary of a multipart/form-data type without other parameters, or None."""
    found = _TYPE.fullmatch(content_type.strip()) if content_type else None
    boundary = (found[1] or found[2] or b"") if found else b""
    return boundary if _BOUNDARY.match(boundary) else None


def read_form(
    body: bytes | memoryview, boundary: bytes, watched: Collection[str]
) -> dict[str, str] | Refusal:
    """The values of the watched fields that are there, by name, or why the form is refused."""
    values: dict[str, str] = {}
    parts = _parts(body, b"--" + boundary)
    if isinstance(parts, Refusal):
        return parts
    for start, end in parts:
        head = _END_OF_HEAD.search(body, start, min(end, start + MAX_HEAD))
        field = None if head is None else _field(bytes(body[start : head.start()]))
        if head is None or field is None:
            return bad_request(
                "A part of the form has no plain Content-Disposition: form-data with one name."
            )
        name, is_file = field
        folded = fold(name.split("[", 1)[0].strip())
        if folded == "_charset_":
            return ambiguous_body("Forms are UTF-8 here. Leave out the field _charset_.")
        if folded not in watched:
            continue
        value = _value(bytes(body[head.end() : min(end, head.end() + MAX_VALUE + 1)]))
        if folded != name or folded in values or is_file or value is None:
            return ambiguous_body(f"Send the form field {folded} once, spelt like this, as short plain text.")
        values[folded] = value
    return values


def _parts(body: bytes | memoryview, delimiter: bytes) -> list[tuple[int, int]] | Refusal:
    """First and last byte (exclusive) of each part, head included."""
    found = re.compile(re.escape(delimiter)).finditer(body)
    marks = [mark.start() for mark in islice(found, MAX_PARTS + 2)]
    if len(marks) > MAX_PARTS + 1:
        return bad_request(f"The form has more than {MAX_PARTS} parts.")
    size = len(delimiter)
    whole = (
        len(marks) > 1
        and marks[0] == 0
        and all(bytes(body[mark - 2 : mark]) == b"\r\n" for mark in marks[1:])
        and all(bytes(body[mark + size : mark + size + 2]) == b"\r\n" for mark in marks[:-1])
        and bytes(body[marks[-1] + size : marks[-1] + size + 5]) in {b"--", b"--\r\n"}
    )
    if not whole:
        return ambiguous_body(
            "The form is not delimited plainly: start it with its boundary, end it with the closing one and "
            "nothing after it, and choose a boundary that its content does not contain."
        )
    return [(mark + size + 2, following - 2) for mark, following in pairwise(marks)]


def _field(head: bytes) -> tuple[str, bool] | None:
    """Name of the field and whether it is a file; None where it is not spelt plainly."""
    disposition: bytes | None = None
    kinds: list[bytes] = []
    for line in head.split(b"\r\n"):
        header = _HEADER.fullmatch(line)
        if header is None:
            return None
        name, value = header[1].lower(), header[2].strip()
        if name == b"content-transfer-encoding" and value.lower() not in _IDENTITY:
            return None
        if name == b"content-disposition":
            if disposition is not None:
                return None
            disposition = value
        elif name == b"content-type":
            kinds.append(value)
    field = None if disposition is None else _name(disposition)
    text = field is not None and not field[1]
    return None if text and (len(kinds) > 1 or any(map(_CHARSET.search, kinds))) else field


def _name(disposition: bytes) -> tuple[str, bool] | None:
    found = _DISPOSITION.fullmatch(disposition)
    if found is None:
        return None
    pairs = list(_parameters(found[1]))
    parameters = dict(pairs)
    if len(parameters) != len(pairs) or b"name" not in parameters or not parameters.keys() <= _KNOWN:
        return None
    try:
        return parameters[b"name"].decode("utf-8"), len(parameters) > 1
    except UnicodeDecodeError:
        return None


def _parameters(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    for found in _PARAMETER.finditer(text):
        yield found[1].lower(), found[2] if found[2] is not None else found[3]


def _value(raw: bytes) -> str | None:
    if len(raw) > MAX_VALUE:
        return None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text == text.strip() and text.isprintable() else None
