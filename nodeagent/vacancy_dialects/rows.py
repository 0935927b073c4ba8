"""The usual row for each kind of route, which a dialect's table writes down by its paths.

| kind | method | body | a query string |
|---|---|---|---|
| work | POST | JSON, judged | dropped: no client needs it |
| form | POST | multipart, judged | refused: some server lets it choose the model |
| read | GET, HEAD | none | makes it management |
| management | given | none | kept |

What one server has different in all its rows is said once, in its `Rows`; what one row has different, with
the row. A row that is like no other is written as a `Route`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypedDict

from vacancy_dialects.routes import BodyRule, BodyShape, EndMark, QueryRule, ReplyRule, Route, RouteClass

if TYPE_CHECKING:
    from typing import Unpack

GET: Final = ("GET", "HEAD")
POST: Final = ("POST",)

_WORK: Final = Route(methods=POST, path="", cls=RouteClass.WORK, shape=BodyShape.JSON, query=QueryRule.DROP)
_FORM: Final = replace(_WORK, shape=BodyShape.MULTIPART, query=QueryRule.REFUSE)
_READ: Final = Route(methods=GET, path="", cls=RouteClass.PASS_THROUGH)
_MANAGEMENT: Final = Route(methods=GET, path="", cls=RouteClass.MANAGEMENT)


class Traits(TypedDict, total=False):
    """What a row may have different from the others of its kind; the words are those of `Route`."""

    body: BodyRule
    query: QueryRule
    end: EndMark
    reply: ReplyRule
    background_refused: bool
    own_ids: bool
    issues_ids: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Writes the rows of one server."""

    reads: tuple[str, ...] = GET
    """With which methods it serves a read."""
    read_query: QueryRule = QueryRule.MANAGEMENT
    """What a query string does to a read."""
    strip: frozenset[bytes] = frozenset()
    """`strip_headers` of every row."""
    relay_headers: frozenset[bytes] = frozenset()
    """`relay_headers` of all work."""
    relay_fields: frozenset[str] = frozenset()
    """`relay_fields` of all work."""

    def work(self, *paths: str, **traits: Unpack[Traits]) -> tuple[Route, ...]:
        """Work that is asked for in JSON."""
        return self._rows(self._relayed(_WORK), paths, traits)

    def form(self, *paths: str, **traits: Unpack[Traits]) -> tuple[Route, ...]:
        """Work that is asked for in a form with files."""
        return self._rows(self._relayed(_FORM), paths, traits)

    def read(self, *paths: str, **traits: Unpack[Traits]) -> tuple[Route, ...]:
        """What a borrower may see at any time."""
        return self._rows(replace(_READ, methods=self.reads, query=self.read_query), paths, traits)

    def management(
        self, methods: tuple[str, ...], *paths: str, **traits: Unpack[Traits]
    ) -> tuple[Route, ...]:
        """What is the owner's alone."""
        return self._rows(replace(_MANAGEMENT, methods=methods), paths, traits)

    def _relayed(self, like: Route) -> Route:
        return replace(like, relay_headers=self.relay_headers, relay_fields=self.relay_fields)

    def _rows(self, like: Route, paths: tuple[str, ...], traits: Traits) -> tuple[Route, ...]:
        return tuple(replace(like, path=path, strip_headers=self.strip, **traits) for path in paths)
