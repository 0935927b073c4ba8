from __future__ import annotations

import pytest

from vacancy_dialects import Match, Route, RouteClass, table_for
from vacancy_dialects.routes import NEVER_FORWARDED


def test_headers_to_drop_depend_on_who_asks():
    route = Route(
        methods=("POST",),
        path="/x",
        cls=RouteClass.WORK,
        strip_headers=frozenset({b"x-a"}),
        relay_headers=frozenset({b"x-b"}),
    )
    assert route.drop_headers(relay=True) == NEVER_FORWARDED | {b"x-a"}
    assert route.drop_headers(relay=False) == NEVER_FORWARDED | {b"x-a", b"x-b"}


@pytest.mark.parametrize(
    ("dialect", "relay", "dropped"),
    [
        ("llamacpp", False, {b"x-conversation-id"}),
        ("llamacpp", True, {b"x-conversation-id"}),
        ("openai", False, {b"x-conversation-id", b"x-amzn-sagemaker-adapter-identifier", b"x-vllm-priority"}),
        ("openai", True, {b"x-conversation-id", b"x-amzn-sagemaker-adapter-identifier"}),
    ],
)
def test_what_each_dialect_strips_from_work(dialect: str, relay: bool, dropped: set[bytes]):
    route = table_for(dialect).classify("POST", b"/v1/chat/completions", None).route
    assert route is not None
    assert route.drop_headers(relay=relay) == {b"x-vacancy-borrower", b"accept-encoding", *dropped}


def test_a_list_that_is_rewritten_is_asked_for_whole_and_uncompressed():
    route = table_for("llamacpp").classify("GET", b"/v1/models", None).route
    assert route is not None
    assert {b"accept-encoding", b"range", b"if-range"} <= route.drop_headers(relay=True)


@pytest.mark.parametrize(
    ("keep", "query", "target"),
    [(True, b"a=1", b"/p?a=1"), (True, b"", b"/p"), (True, None, b"/p"), (False, b"a=1", b"/p")],
)
def test_the_target_keeps_the_query_only_where_the_row_does(keep: bool, query: bytes | None, target: bytes):
    assert Match(RouteClass.WORK, None, b"/p", "", keep).target(query) == target
