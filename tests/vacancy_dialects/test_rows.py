from __future__ import annotations

import pytest

from vacancy_dialects import BodyShape, EndMark, QueryRule, Route, RouteClass
from vacancy_dialects.rows import POST, Rows

ITS = Rows(strip=frozenset({b"x-a"}), relay_headers=frozenset({b"x-b"}), relay_fields=frozenset({"c"}))


def test_a_row_for_each_path_in_the_order_of_the_paths():
    assert [row.path for row in ITS.work("/b", "/a", "/c")] == ["/b", "/a", "/c"]


def test_what_the_server_has_different_is_in_every_row_it_concerns():
    work, form, read, own = (
        *ITS.work("/w"), *ITS.form("/f"), *ITS.read("/r"), *ITS.management(("DELETE",), "/m"),
    )  # fmt: skip
    assert {row.strip_headers for row in (work, form, read, own)} == {ITS.strip}
    assert [bool(row.relay_headers) for row in (work, form, read, own)] == [True, True, False, False]
    assert [bool(row.relay_fields) for row in (work, form, read, own)] == [True, True, False, False]


@pytest.mark.parametrize(
    ("row", "methods", "cls", "shape", "query"),
    [
        (Rows().work("/x"), POST, RouteClass.WORK, BodyShape.JSON, QueryRule.DROP),
        (Rows().form("/x"), POST, RouteClass.WORK, BodyShape.MULTIPART, QueryRule.REFUSE),
        (Rows().read("/x"), ("GET", "HEAD"), RouteClass.PASS_THROUGH, BodyShape.NONE, QueryRule.MANAGEMENT),
        (Rows(reads=("GET",)).read("/x"), ("GET",), RouteClass.PASS_THROUGH, BodyShape.NONE, None),
        (Rows(read_query=QueryRule.KEEP).read("/x"), None, RouteClass.PASS_THROUGH, None, QueryRule.KEEP),
        (Rows().management(("PUT",), "/x"), ("PUT",), RouteClass.MANAGEMENT, BodyShape.NONE, QueryRule.KEEP),
    ],
)
def test_the_usual_row(row: tuple[Route, ...], methods: object, cls: object, shape: object, query: object):
    (route,) = row
    assert route.cls is cls
    assert methods in {None, route.methods}
    assert shape in {None, route.shape}
    assert query in {None, route.query}


def test_one_row_may_differ_from_the_server():
    (route,) = ITS.read("/x", query=QueryRule.DROP, end=EndMark.DONE, own_ids=True)
    assert (route.query, route.end, route.own_ids) == (QueryRule.DROP, EndMark.DONE, True)
