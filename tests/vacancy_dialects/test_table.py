from __future__ import annotations

import posixpath
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vacancy_dialects import QueryRule, Route, RouteClass, RouteTable, table_for
from vacancy_dialects.table import DuplicateRouteError

WORK, PASS, MANAGEMENT = RouteClass.WORK, RouteClass.PASS_THROUGH, RouteClass.MANAGEMENT
UNLISTED, UNKNOWN = RouteClass.UNLISTED_READ, RouteClass.UNRECOGNISED

TABLE = RouteTable(
    "sample",
    [
        Route(methods=("GET", "HEAD"), path="/models", cls=PASS, query=QueryRule.DROP),
        Route(methods=("GET", "HEAD"), path="/models/{model}", cls=PASS, query=QueryRule.DROP),
        Route(methods=("GET",), path="/health", cls=PASS, query=QueryRule.MANAGEMENT),
        Route(methods=("GET",), path="/slots", cls=MANAGEMENT),
        Route(methods=("POST",), path="/generate", cls=WORK, query=QueryRule.DROP),
        Route(methods=("POST",), path="/form", cls=WORK, query=QueryRule.REFUSE),
        Route(methods=("GET",), path="/answers/{id}", cls=MANAGEMENT, own_ids=True),
        Route(methods=("POST",), path="/answers/{id}/cancel", cls=MANAGEMENT, own_ids=True),
        Route(methods=("WS",), path="/live", cls=WORK, query=QueryRule.REFUSE),
    ],
)


@pytest.mark.parametrize(
    ("method", "path", "query", "cls", "target"),
    [
        ("GET", b"/models", None, PASS, b"/models"),
        ("GET", b"/models", b"reload=1", PASS, b"/models"),
        ("GET", b"/models/a", None, PASS, b"/models/a"),
        ("GET", b"/models/a%3Ab", None, PASS, b"/models/a%3Ab"),
        ("GET", b"/models/a/b", None, UNLISTED, b"/models/a/b"),
        ("GET", b"/models/", None, UNLISTED, b"/models/"),
        ("GET", b"/models/..%2Fslots", None, UNLISTED, b"/models/..%2Fslots"),
        ("GET", b"/models/%2e%2e", None, UNLISTED, b"/models/%2e%2e"),
        ("GET", b"/models/a%252Fb", None, UNLISTED, b"/models/a%252Fb"),
        ("GET", b"/models/a\\b", None, UNLISTED, b"/models/a\\b"),
        ("GET", b"/models/a;x=1", None, UNLISTED, b"/models/a;x=1"),
        ("GET", b"/x/../models", None, PASS, b"/models"),
        ("GET", b"/x/../slots", None, MANAGEMENT, b"/slots"),
        ("GET", b"/%73lots", None, UNLISTED, b"/%73lots"),
        ("GET", b"/health", None, PASS, b"/health"),
        ("GET", b"/health", b"", PASS, b"/health"),
        ("GET", b"/health", b"a", MANAGEMENT, b"/health?a"),
        ("HEAD", b"/health", None, UNLISTED, b"/health"),
        ("GET", b"/slots", b"x=1", MANAGEMENT, b"/slots?x=1"),
        ("GET", b"/slots/", None, UNLISTED, b"/slots/"),
        ("GET", b"//slots", None, UNLISTED, b"//slots"),
        ("GET", b"/SLOTS", None, UNLISTED, b"/SLOTS"),
        ("GET", b"/slots%", None, UNLISTED, b"/slots%"),
        ("GET", b"", None, UNLISTED, b""),
        ("GET", b"*", None, UNLISTED, b"*"),
        ("GET", b"http://h/models", None, UNLISTED, b"http://h/models"),
        ("POST", b"/generate", b"beta=true", WORK, b"/generate"),
        ("POST", b"/generat%65", None, UNKNOWN, b"/generat%65"),
        ("POST", b"/form", b"model=x", WORK, b"/form"),
        ("POST", b"/models", None, UNKNOWN, b"/models"),
        ("DELETE", b"/slots", None, UNKNOWN, b"/slots"),
        ("OPTIONS", b"/generate", None, UNKNOWN, b"/generate"),
        ("OPTIONS", b"*", None, UNKNOWN, b"*"),
        ("post", b"/generate", None, UNKNOWN, b"/generate"),
        ("GET", b"/generate", None, UNLISTED, b"/generate"),
        ("GET", b"/live", None, UNLISTED, b"/live"),
        ("WS", b"/live", None, WORK, b"/live"),
        ("WS", b"/models", None, UNKNOWN, b"/models"),
        ("GET", b"/answers/resp_1", b"stream=true", MANAGEMENT, b"/answers/resp_1?stream=true"),
        ("POST", b"/answers/resp%5F1/cancel", None, MANAGEMENT, b"/answers/resp%5F1/cancel"),
        ("POST", b"/answers//cancel", None, UNKNOWN, b"/answers//cancel"),
    ],
)
def test_classes(method: str, path: bytes, query: bytes | None, cls: RouteClass, target: bytes):
    match = TABLE.classify(method, path, query)
    assert (match.cls, match.target(query)) == (cls, target)


def test_ids_are_handed_out_decoded():
    match = TABLE.classify("POST", b"/answers/resp%5F1/cancel", None)
    assert match.params == (b"resp_1",)
    assert match.route is not None
    assert match.route.own_ids


def test_the_same_request_gives_the_same_object():
    assert TABLE.classify("POST", b"/generate", None) is TABLE.classify("POST", b"/generate", None)


def test_the_reads_of_a_borrower_are_named():
    assert TABLE.reads == ("GET /models", "GET /models/{model}", "GET /health")


def test_a_row_cannot_be_there_twice():
    row = Route(methods=("GET",), path="/a", cls=PASS)
    with pytest.raises(DuplicateRouteError, match="GET /a is listed twice"):
        RouteTable("x", [row, row])


LISTED = {
    dialect: [(method, row) for row in table_for(dialect).rows for method in row.methods]
    for dialect in ("openai", "llamacpp")
}


def spelt(path: str) -> st.SearchStrategy[bytes]:
    """`path` with some of its characters percent-encoded, once or twice, some doubled, and pieces put in."""
    pieces = [
        st.sampled_from(
            [c.encode(), b"%%%02x" % ord(c), b"%%%02X" % ord(c), b"%%25%02x" % ord(c), c.upper().encode()]
        )
        if index % 3 == 0
        else st.just(c.encode())
        for index, c in enumerate(path)
    ]
    extra = st.sampled_from(
        [b"", b"", b"", b"/", b"/.", b"/..", b"/x/..", b"/%2e%2e", b"/..%2f", b"%2f", b"//", b"%00", b";"]
    )
    return st.tuples(extra, st.tuples(*pieces).map(b"".join), extra).map(b"".join)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, bytes]:
    dialect = draw(st.sampled_from(sorted(LISTED)))
    method, row = draw(st.sampled_from(LISTED[dialect]))
    path = row.path.replace("{", "").replace("}", "")
    raw = draw(st.one_of(spelt(path), st.just(path.encode())))
    return dialect, draw(st.sampled_from([method, "GET", "POST"])), raw


def fully_read(path: bytes) -> bytes:
    """The path as the most eager server reads it: decoded until nothing changes, then normalised."""
    while (plain := unquote_to_bytes(path)) != path:
        path = plain
    return posixpath.normpath(path)


def fits(row: Route, path: bytes) -> bool:
    have, want = path.split(b"/"), row.path.encode().split(b"/")
    return len(have) == len(want) and all(
        w.startswith(b"{") or w == h for w, h in zip(want, have, strict=True)
    )


@settings(max_examples=400, deadline=None)
@given(requests())
def test_what_is_open_is_read_as_its_row_by_every_server(request_: tuple[str, str, bytes]):
    dialect, method, path = request_
    match = table_for(dialect).classify(method, path, None)
    if match.cls in {WORK, PASS}:
        assert match.route is not None
        assert method in match.route.methods
        assert fits(match.route, match.path)
        assert fits(match.route, fully_read(path))


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["GET", "HEAD", "POST", "WS", "PUT"]),
    st.binary(max_size=40),
    st.none() | st.binary(max_size=5),
)
def test_any_bytes_get_an_answer(method: str, path: bytes, query: bytes | None):
    match = table_for("llamacpp").classify(method, path, query)
    assert match.route is not None or match.cls in {UNLISTED, UNKNOWN}
