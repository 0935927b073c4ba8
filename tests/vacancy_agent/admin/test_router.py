"""The table of routes: which row a path has, and what stands for the name in it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from yarl import URL

from vacancy_agent.admin.router import Route, Router, answer

if TYPE_CHECKING:
    from aiohttp.web_response import Response


async def handler(_request: object, name: str) -> Response:
    return answer({"name": name})


ROUTER = Router(
    (
        Route("GET", "/status", handler),
        Route("GET", "/holds", handler),
        Route("DELETE", "/holds/{id}", handler),
    )
)


async def asked(method: str, path: str) -> tuple[int, Any]:
    url = URL(path, encoded=True)
    request: Any = SimpleNamespace(method=method, path=url.path, rel_url=url)
    reply = await ROUTER(request)
    assert isinstance(reply.body, bytes)
    return reply.status, orjson.loads(reply.body)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/status", 200),
        ("HEAD", "/status", 200),
        ("GET", "/status?a=b", 200),
        ("GET", "/status/", 404),
        ("GET", "/Status", 404),
        ("GET", "/%73tatus", 404),
        ("GET", "/holds", 200),
        ("GET", "/holds/", 404),
        ("POST", "/holds", 405),
        ("DELETE", "/holds/7", 200),
        ("DELETE", "/holds/{id}", 200),
        ("GET", "/holds/7", 405),
        ("DELETE", "/holds/7/8", 404),
        ("DELETE", "/holds/", 404),
        ("GET", "/", 404),
    ],
)
async def test_exactly_the_rows_and_nothing_near_them(method: str, path: str, status: int):
    assert (await asked(method, path))[0] == status


@pytest.mark.parametrize(
    ("raw", "name"), [("7", "7"), ("a%20b", "a b"), ("a%2Fb", "a/b"), ("%C3%A9", "é"), ("%7Bid%7D", "{id}")]
)
async def test_the_name_in_a_path_is_decoded_once(raw: str, name: str):
    assert (await asked("DELETE", f"/holds/{raw}"))[1] == {"name": name}


async def test_bytes_that_are_no_text_break_no_answer():
    status, document = await asked("DELETE", "/nowhere/%FF")
    assert status == 404
    assert document["error"]["message"].startswith("there is no /nowhere/")
