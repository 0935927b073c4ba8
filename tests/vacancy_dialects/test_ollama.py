from __future__ import annotations

import pytest

from vacancy_dialects import BodyRule, BodyShape, EndMark, QueryRule, RouteClass, table_for

WORK, PASS, MANAGEMENT = RouteClass.WORK, RouteClass.PASS_THROUGH, RouteClass.MANAGEMENT
UNLISTED, UNKNOWN = RouteClass.UNLISTED_READ, RouteClass.UNRECOGNISED
TABLE = table_for("ollama")


@pytest.mark.parametrize(
    ("path", "end", "rule"),
    [
        ("/api/generate", EndMark.DONE, BodyRule.OLLAMA_GENERATE),
        ("/api/chat", EndMark.DONE, BodyRule.OLLAMA_CHAT),
        ("/api/embed", EndMark.UNKNOWN, BodyRule.OLLAMA),
        ("/api/embeddings", EndMark.UNKNOWN, BodyRule.OLLAMA),
        ("/v1/chat/completions", EndMark.CHAT, BodyRule.OLLAMA_V1),
        ("/v1/completions", EndMark.CHAT, BodyRule.OLLAMA_V1),
        ("/v1/embeddings", EndMark.UNKNOWN, BodyRule.OLLAMA_V1),
        ("/v1/responses", EndMark.RESPONSES, BodyRule.OLLAMA_V1),
        ("/v1/messages", EndMark.MESSAGES, BodyRule.OLLAMA_V1),
        ("/v1/images/generations", EndMark.IMAGE, BodyRule.OLLAMA_V1),
        ("/v1/images/edits", EndMark.IMAGE, BodyRule.OLLAMA_V1),
    ],
)
def test_json_work(path: str, end: EndMark, rule: BodyRule):
    match = TABLE.classify("POST", path.encode(), b"beta=true")
    assert match.cls is WORK
    assert match.target(b"beta=true") == path.encode()
    assert match.route is not None
    assert (match.route.shape, match.route.end, match.route.body) == (BodyShape.JSON, end, rule)
    assert match.route.background_refused == path.endswith("/responses")


def test_form_work_takes_no_query():
    match = TABLE.classify("POST", b"/v1/audio/transcriptions", b"model=huge")
    assert match.cls is WORK
    assert match.route is not None
    assert (match.route.shape, match.route.query) == (BodyShape.MULTIPART, QueryRule.REFUSE)


@pytest.mark.parametrize(
    ("method", "path", "cls"),
    [
        ("GET", b"/", PASS),
        ("HEAD", b"/", PASS),
        ("GET", b"/api/version", PASS),
        ("HEAD", b"/api/version", PASS),
        ("GET", b"/api/tags", PASS),
        ("HEAD", b"/api/tags", PASS),
        ("GET", b"/v1/models", PASS),
        ("HEAD", b"/v1/models", UNLISTED),
        ("GET", b"/v1/models/small:latest", PASS),
        ("HEAD", b"/v1/models/small", UNLISTED),
        ("POST", b"/api/show", PASS),
        ("GET", b"/api/show", UNLISTED),
        ("GET", b"/api/status", UNLISTED),
        ("GET", b"/api/experimental/model-recommendations", UNLISTED),
        ("GET", b"/api/ps", MANAGEMENT),
        ("HEAD", b"/api/ps", UNLISTED),
        ("POST", b"/api/pull", MANAGEMENT),
        ("POST", b"/api/push", MANAGEMENT),
        ("POST", b"/api/create", MANAGEMENT),
        ("POST", b"/api/copy", MANAGEMENT),
        ("DELETE", b"/api/delete", MANAGEMENT),
        ("POST", b"/api/blobs/sha256:0123", MANAGEMENT),
        ("HEAD", b"/api/blobs/sha256:0123", MANAGEMENT),
        ("GET", b"/api/blobs/sha256:0123", UNLISTED),
        ("POST", b"/api/me", MANAGEMENT),
        ("POST", b"/api/signout", MANAGEMENT),
        ("DELETE", b"/api/user/keys/abc=", MANAGEMENT),
        ("POST", b"/api/experimental/web_search", MANAGEMENT),
        ("POST", b"/api/experimental/web_fetch", MANAGEMENT),
        ("GET", b"/api/experimental/aliases", MANAGEMENT),
        ("POST", b"/api/experimental/aliases", MANAGEMENT),
        ("DELETE", b"/api/experimental/aliases", MANAGEMENT),
        ("OPTIONS", b"/api/generate", UNKNOWN),
        ("PUT", b"/api/generate", UNKNOWN),
        ("post", b"/api/generate", UNKNOWN),
        ("POST", b"/api/new-in-the-next-release", UNKNOWN),
    ],
)
def test_every_other_row(method: str, path: bytes, cls: RouteClass):
    assert TABLE.classify(method, path, None).cls is cls


@pytest.mark.parametrize(
    ("method", "path", "cls"),
    [
        # gin would answer with a redirect to the route itself.
        ("POST", b"/api/generate/", UNKNOWN),
        ("GET", b"/api/tags/", UNLISTED),
        ("POST", b"//api/generate", UNKNOWN),
        ("POST", b"/API/generate", UNKNOWN),
        # gin matches the decoded path; a table that only compares what was sent would pass this one.
        ("GET", b"/api/%70s", UNLISTED),
        ("POST", b"/api/%67enerate", UNKNOWN),
        ("GET", b"/v1/models/..%2f..%2fapi%2fps", UNLISTED),
        ("GET", b"/v1/models/../../api/ps", MANAGEMENT),
        ("GET", b"/v1/models/ns%2fsmall", UNLISTED),
        ("GET", b"/v1/models/ns/small", UNLISTED),
        ("GET", b"/v1/models/", UNLISTED),
        ("GET", b"/v1/models/small%20", UNLISTED),
        ("GET", b"/v1/models/small%253acloud", UNLISTED),
    ],
)
def test_paths_as_gin_reads_them(method: str, path: bytes, cls: RouteClass):
    assert TABLE.classify(method, path, None).cls is cls


@pytest.mark.parametrize("name", [b"small:cloud", b"small%3Acloud", b"small%3acl%6fud"])
def test_the_model_in_a_path_is_the_decoded_one(name: bytes):
    match = TABLE.classify("GET", b"/v1/models/" + name, None)
    assert match.params == (b"small:cloud",)
    assert match.route is not None
    assert match.route.model_in_path


def test_only_the_read_of_a_model_is_judged():
    assert [route.path for route in TABLE.rows if route.judged_read] == ["/api/show"]


def test_no_read_keeps_its_query():
    reads = [route for route in TABLE.rows if route.cls is PASS]
    assert {route.query for route in reads} == {QueryRule.DROP}
