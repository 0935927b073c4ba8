"""Reading plain data that may be of any shape: what is not as expected is skipped, never an error.

The cross checks run on manifests whose fields are already known to be wrong. A reader that raised would hide
their findings; one that guessed would invent some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_MOST_ENTRIES = 256
"""No list of a spec is longer: past it the length is the error, and a look at each entry only takes time."""

Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, counted from the spec, and what to change."""

    loc: Loc
    message: str


def mapping(data: object, key: str) -> Mapping[object, object]:
    """The mapping under `key`, or an empty one."""
    value = data.get(key) if isinstance(data, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def entries(data: object, key: str) -> list[tuple[int, Mapping[object, object]]]:
    """Position and content of each mapping among the first 256 in the list under `key`."""
    value = data.get(key) if isinstance(data, Mapping) else None
    if not isinstance(value, list):
        return []
    return [(index, item) for index, item in enumerate(value[:_MOST_ENTRIES]) if isinstance(item, Mapping)]


def text(data: Mapping[object, object], key: str) -> str | None:
    """The text under `key`, or None."""
    value = data.get(key)
    return value if isinstance(value, str) else None


def texts(data: Mapping[object, object], key: str) -> list[tuple[int, str]]:
    """Position and content of each text among the first 256 in the list under `key`."""
    value = data.get(key)
    if not isinstance(value, list):
        return []
    return [(index, item) for index, item in enumerate(value[:_MOST_ENTRIES]) if isinstance(item, str)]


def number(data: Mapping[object, object], key: str) -> int | None:
    """The whole number under `key`, or None; a boolean is none."""
    value = data.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def repeated(found: Iterable[tuple[int, str | None]]) -> Iterator[tuple[int, str]]:
    """Every occurrence after the first of a text that occurs more than once."""
    seen: Counter[str] = Counter()
    for index, value in found:
        if value is None:
            continue
        if seen[value]:
            yield index, value
        seen[value] += 1
