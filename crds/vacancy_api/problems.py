"""Errors of documents that people and programs write, each with its path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vacancy_api.loose import Loc

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error: where (empty: the document as a whole), and what to change."""

    path: str
    message: str
    line: int | None = None
    """Line of the file, from 1, where it is known."""

    def __str__(self) -> str:
        """`spec.upstreams[0].port: must be ... (line 12)`."""
        place = f"{self.path}: " if self.path else ""
        return f"{place}{self.message}{f' (line {self.line})' if self.line else ''}"


class ContractInvalid(ValueError):  # noqa: N818 - a verdict on a document, not a failure of the program
    """The document is refused; `errors` names every reason."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors: tuple[FieldError, ...] = tuple(dict.fromkeys(errors))
        super().__init__("; ".join(map(str, self.errors)))


def path_of(loc: Loc) -> str:
    """A location as people write it: `spec.upstreams[0].port`."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.match(part):
            text += f".{part}" if text else part
        else:
            text += f"[{_short(part)}]"
    return text


def shown(value: object) -> str:
    """A value as a message quotes it: short, and never a page long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return _short(value)


def _short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:
        return "a number that is too long"
    return text if len(text) <= 60 else f"{text[:56]}..."  # noqa: PLR2004 - a readable line
