"""What Ollama says of its models: which it holds (`/api/ps`) and how one is set up (`/api/show`).

Invariant: an answer is read whole or not at all. A list that cannot be read is an error, never a shorter
list: an empty one would be taken as proof that the server let go of everything. What may be missing from a
row is what older servers do not send (`context_length`) and a time that nobody can read: each becomes None,
which earns no credit. Rejected: taking such a time as now, or as far away.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import WallTime
from vacancy_agent.core.parse.document import json_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_PARAMETER = re.compile(r"num_ctx\s+(\S+)", re.ASCII)
_LARGEST = 1 << 40
"""More tokens than any context has."""


class OllamaAnswerError(Exception):
    """An answer that is not what Ollama says; the message tells what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Resident:
    """One model that the server holds, as `/api/ps` lists it."""

    name: str
    """As listed: the short form, with its tag."""
    digest: str
    context_length: int | None
    """Tokens of one slot (of all slots together before 0.11); None: this server does not say."""
    expires_at: WallTime | None
    """When it goes if nobody asks for it; None: the time cannot be read."""
    size: int
    """Bytes it takes in all."""
    size_vram: int
    """Bytes of them on cards."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What `/api/show` tells of a model's own settings."""

    num_ctx: int | None
    """The context its Modelfile sets; None: it sets none."""


def parse_ps(body: bytes) -> tuple[Resident, ...]:
    """The models of an answer to GET /api/ps, in its order.

    Raises:
        OllamaAnswerError: it is not such an answer, as a whole or in one row.
    """
    answer = json_object(body, "/api/ps", OllamaAnswerError)
    if "models" not in answer:
        raise OllamaAnswerError("/api/ps does not tell its models")
    rows = answer["models"]
    if rows is None:  # a nil slice of Go: nothing is loaded
        return ()
    if not isinstance(rows, list):
        raise OllamaAnswerError("/api/ps: models is no list")
    return tuple(_resident(row) for row in rows)


def parse_show(body: bytes) -> Shown:
    """The context that the model's Modelfile sets, from an answer to POST /api/show.

    Raises:
        OllamaAnswerError: it is not such an answer, or the number cannot be read.
    """
    parameters = json_object(body, "/api/show", OllamaAnswerError).get("parameters", "")
    if not isinstance(parameters, str):
        raise OllamaAnswerError("/api/show: parameters is no text")
    said = set(_num_ctx(parameters.splitlines()))
    if len(said) > 1:
        raise OllamaAnswerError("/api/show: num_ctx is set twice")
    return Shown(said.pop() if said else None)


def parse_time(text: object) -> WallTime | None:
    """An RFC 3339 time with up to nine fraction digits; None: it is none."""
    found = _TIME.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    day, time, fraction, sign, hours, minutes = found.groups()
    try:
        whole = datetime.strptime(f"{day} {time}", "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    offset = 0 if sign is None else int(f"{sign}1") * (int(hours) * 3600 + int(minutes) * 60)
    return WallTime(whole.timestamp() + float(f"0.{fraction or 0}") - offset)


def _resident(row: object) -> Resident:
    if not isinstance(row, dict):
        raise OllamaAnswerError("/api/ps: a model is no object")
    name = row.get("name") or row.get("model")
    if not isinstance(name, str) or not isinstance(row.get("digest"), str):
        raise OllamaAnswerError("/api/ps: a model without a name or a digest")
    context = row.get("context_length")
    return Resident(
        name,
        row["digest"],
        None if context is None else _count(context, "context_length"),
        parse_time(row.get("expires_at")),
        _count(row.get("size"), "size"),
        _count(row.get("size_vram"), "size_vram"),
    )


def _count(value: object, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise OllamaAnswerError(f"/api/ps: {field} is no count")
    return value


def _num_ctx(lines: Iterable[str]) -> Iterator[int]:
    """The values of num_ctx; a float of Go, so 1048576 is printed as `1.048576e+06`."""
    for line in lines:
        found = _PARAMETER.fullmatch(line.strip())
        if found is not None:
            yield _tokens(found[1])


def _tokens(text: str) -> int:
    try:
        number = float(text)
    except ValueError:
        number = 0.5
    if not 0 < number < _LARGEST or number != int(number):
        raise OllamaAnswerError("/api/show: num_ctx is no whole number")
    return int(number)
