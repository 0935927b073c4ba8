"""Metric families as plain values, and the text that Prometheus reads.

The text format (version 0.0.4) is four rules. A client library for it costs a MiB and a registry that keeps
what is made anew at each scrape here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "vacancy_"


class Family:
    """One metric with its samples; a family without samples still says what it is about."""

    __slots__ = ("about", "kind", "labels", "name", "samples")

    def __init__(
        self, kind: Literal["gauge", "counter"], name: str, about: str, labels: tuple[str, ...]
    ) -> None:
        self.kind = kind
        self.name = name
        self.about = about
        self.labels = labels
        self.samples: list[tuple[tuple[str, ...], float]] = []

    def add(self, value: float, *labels: str) -> None:
        """A sample with the values of the family's labels, in their order."""
        self.samples.append((labels, value))


def gauge(name: str, about: str, *labels: str) -> Family:
    """A figure that goes up and down."""
    return Family("gauge", PREFIX + name, about, labels)


def counter(name: str, about: str, *labels: str) -> Family:
    """A count since the agent started; `_total` is added to its name."""
    return Family("counter", f"{PREFIX}{name}_total", about, labels)


def text(families: Iterable[Family]) -> bytes:
    """The exposition."""
    return "".join(line for family in families for line in _lines(family)).encode("utf-8", "replace")


def _lines(family: Family) -> Iterator[str]:
    about = family.about.replace("\\", "\\\\").replace("\n", "\\n")
    yield f"# HELP {family.name} {about}\n# TYPE {family.name} {family.kind}\n"
    for values, number in family.samples:
        pairs = sorted(zip(family.labels, values, strict=True))  # a series has one spelling
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)
        yield (
            f"{family.name}{{{labels}}} {float(number)!r}\n"
            if labels
            else f"{family.name} {float(number)!r}\n"
        )


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
