"""Matching: which row of a table a request meets, failing closed for everything else.

1. The path is read twice: as sent, and percent-decoded; dot segments are resolved in both.
2. Both readings must meet the same row (or both none). Where they differ, servers differ too: the request is
   unlisted.
3. An unlisted GET or HEAD is treated like management, any other unlisted request is unrecognised.
4. A row may turn a read with a query string into management.

The failure this prevents: `/%73lots` is `/slots` to llama-server, so a table that compares only what was sent
would let a borrower read the owner's prompts. Matching by prefix was rejected: look-alike paths inherit the
exception.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vacancy_dialects.paths import decoded, plain_segment, resolve_dots
from vacancy_dialects.routes import Match, QueryRule, Route, RouteClass

if TYPE_CHECKING:
    from collections.abc import Iterable

_READS: Final = frozenset({"GET", "HEAD"})
_UNSURE: Final = "the path reads differently as sent and percent-decoded"


class DuplicateRouteError(ValueError):
    """Two rows of one table claim the same method and path."""


class RouteTable:
    """The compiled rows of one dialect. Immutable; only a path not written as listed costs an allocation."""

    def __init__(self, dialect: str, rows: Iterable[Route]) -> None:
        self.dialect = dialect
        self.rows = tuple(rows)
        self._bare: dict[tuple[str, bytes], Match] = {}
        self._queried: dict[tuple[str, bytes], Match] = {}
        self._templates: dict[tuple[str, int], list[tuple[tuple[bytes, ...], Route]]] = {}
        for route in self.rows:
            for method in route.methods:
                self._add(method, route)
        self.reads = tuple(self._borrower_reads())
        """The reads a borrower has, as `GET /path`, for the refusal of the others."""

    def classify(self, method: str, path: bytes, query: bytes | None) -> Match:
        """What the table says; the method is compared as sent, an empty query counts as none."""
        found = (self._queried if query else self._bare).get((method, path))
        return found or self._classify_readings(method, path, query)

    def _add(self, method: str, route: Route) -> None:
        path = route.path.encode("ascii")
        if b"{" in path:
            segments = tuple(path.split(b"/"))
            self._templates.setdefault((method, len(segments)), []).append((segments, route))
            return
        if (method, path) in self._bare:
            msg = f"{self.dialect}: {method} {route.path} is listed twice"
            raise DuplicateRouteError(msg)
        self._bare[method, path] = _match(route, path, queried=False)
        self._queried[method, path] = _match(route, path, queried=True)

    def _classify_readings(self, method: str, path: bytes, query: bytes | None) -> Match:
        sent, plain = resolve_dots(path), decoded(path)
        if not path.startswith(b"/") or plain is None:
            return _unlisted(method, path, "not a well-formed path")
        first = self._find(method, sent, bool(query))
        second = first if plain == path else self._find(method, resolve_dots(plain), bool(query))
        if first is None and second is None:
            return _unlisted(method, sent, "no such route in the table")
        if first is None or second is None or first.route is not second.route:
            return _unlisted(method, sent, _UNSURE)
        if not all(map(plain_segment, second.params)):
            return _unlisted(method, sent, "a segment holds characters that servers read differently")
        return Match(second.cls, second.route, sent, second.why, second.keep_query, second.params)

    def _find(self, method: str, path: bytes, queried: bool) -> Match | None:
        exact = (self._queried if queried else self._bare).get((method, path))
        if exact is not None:
            return exact
        segments = path.split(b"/", 64)
        for template, route in self._templates.get((method, len(segments)), ()):
            params = _params(template, segments)
            if params is not None:
                return _match(route, path, queried=queried, params=params)
        return None

    def _borrower_reads(self) -> Iterable[str]:
        for route in self.rows:
            if route.cls is RouteClass.PASS_THROUGH and "GET" in route.methods:
                yield f"GET {route.path}"


def _match(route: Route, path: bytes, *, queried: bool, params: tuple[bytes, ...] = ()) -> Match:
    keep = route.query in {QueryRule.KEEP, QueryRule.MANAGEMENT}
    if queried and route.query is QueryRule.MANAGEMENT:
        return Match(RouteClass.MANAGEMENT, route, path, "with a query string", keep, params)
    return Match(route.cls, route, path, "listed", keep, params)


def _params(template: tuple[bytes, ...], segments: list[bytes]) -> tuple[bytes, ...] | None:
    params: list[bytes] = []
    for want, have in zip(template, segments, strict=True):
        if want.startswith(b"{"):
            if not have:
                return None
            params.append(have)
        elif want != have:
            return None
    return tuple(params)


def _unlisted(method: str, path: bytes, why: str) -> Match:
    cls = RouteClass.UNLISTED_READ if method in _READS else RouteClass.UNRECOGNISED
    return Match(cls, None, path, why)
