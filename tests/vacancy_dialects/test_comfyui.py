from __future__ import annotations

import pytest

from vacancy_dialects import WEBSOCKET, BodyShape, RouteClass, table_for

WORK, PASS, MANAGEMENT = RouteClass.WORK, RouteClass.PASS_THROUGH, RouteClass.MANAGEMENT
UNLISTED, UNKNOWN = RouteClass.UNLISTED_READ, RouteClass.UNRECOGNISED
TABLE = table_for("comfyui")
BOTH = ["", "/api"]


def cls(method: str, path: str, query: bytes | None = None) -> RouteClass:
    return TABLE.classify(method, path.encode(), query).cls


@pytest.mark.parametrize("prefix", BOTH)
def test_a_submission_is_tracked_work(prefix: str) -> None:
    match = TABLE.classify("POST", f"{prefix}/prompt".encode(), b"x=1")
    assert match.cls is WORK
    assert match.route is not None
    assert (match.route.tracked, match.route.shape) == (True, BodyShape.GRAPH)
    assert match.target(b"x=1") == f"{prefix}/prompt".encode()


@pytest.mark.parametrize("prefix", BOTH)
@pytest.mark.parametrize("path", ["/upload/image", "/upload/mask"])
def test_an_upload_is_work_that_ends_with_its_reply(prefix: str, path: str) -> None:
    match = TABLE.classify("POST", (prefix + path).encode(), None)
    assert match.cls is WORK
    assert match.route is not None
    assert (match.route.tracked, match.route.shape) == (False, BodyShape.NONE)


@pytest.mark.parametrize("prefix", BOTH)
@pytest.mark.parametrize(
    "path",
    [
        *("/prompt", "/history/abc", "/view", "/object_info", "/object_info/KSampler"),
        *("/models", "/models/checkpoints", "/embeddings", "/features"),
    ],
)
def test_a_borrowers_reads(prefix: str, path: str) -> None:
    assert cls("GET", prefix + path) is PASS
    assert cls("HEAD", prefix + path) is PASS


def test_a_picture_is_fetched_with_its_query() -> None:
    match = TABLE.classify("GET", b"/view", b"filename=a.png&type=output")
    assert match.target(b"filename=a.png&type=output") == b"/view?filename=a.png&type=output"


def test_jobs_are_below_api_alone() -> None:
    assert cls("GET", "/api/jobs/abc") is PASS
    assert cls("GET", "/jobs/abc") is UNLISTED  # run: 404
    assert cls("GET", "/api/jobs") is MANAGEMENT
    assert cls("POST", "/api/jobs/abc/cancel") is MANAGEMENT
    assert cls("POST", "/api/jobs/cancel") is MANAGEMENT


@pytest.mark.parametrize("prefix", BOTH)
def test_progress_is_a_tunnel_that_names_its_client(prefix: str) -> None:
    match = TABLE.classify(WEBSOCKET, f"{prefix}/ws".encode(), b"clientId=x")
    assert match.cls is PASS
    assert match.route is not None
    assert match.route.client_query == "clientId"
    assert match.target(b"clientId=x") == f"{prefix}/ws?clientId=x".encode()
    assert cls("GET", f"{prefix}/ws") is UNLISTED


@pytest.mark.parametrize("prefix", BOTH)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/system_stats"),
        ("GET", "/queue"),
        ("POST", "/queue"),
        ("POST", "/interrupt"),
        ("POST", "/free"),
        ("GET", "/history"),
        ("POST", "/history"),
        ("GET", "/settings"),
        ("POST", "/settings/Comfy.Theme"),
        ("GET", "/users"),
        ("GET", "/userdata"),
        ("DELETE", "/userdata/workflow.json"),
        ("POST", "/userdata/a/move/b"),
        ("GET", "/v2/userdata"),
    ],
)
def test_management(prefix: str, method: str, path: str) -> None:
    assert cls(method, prefix + path) is MANAGEMENT


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/internal/logs"),
        ("GET", "/internal/logs/raw"),
        ("PATCH", "/internal/logs/subscribe"),
        ("GET", "/internal/folder_paths"),
        ("GET", "/internal/files/output"),
        ("GET", "/api/assets"),
        ("PUT", "/api/assets/7"),
        ("GET", "/api/assets/7/content"),
        ("POST", "/api/assets/seed/cancel"),
        ("GET", "/api/tags"),
    ],
)
def test_management_that_has_one_path(method: str, path: str) -> None:
    assert cls(method, path) is MANAGEMENT


@pytest.mark.parametrize(
    ("method", "path", "found"),
    [
        ("GET", "/extensions", UNLISTED),
        ("GET", "/view_metadata/checkpoints", UNLISTED),
        ("GET", "/", UNLISTED),
        ("GET", "/manager/reboot", UNLISTED),
        ("POST", "/v2/manager/reboot", UNKNOWN),
        ("POST", "/customnode/install", UNKNOWN),
        ("POST", "/api/api/jobs/x/cancel", UNKNOWN),
        ("PUT", "/prompt", UNKNOWN),
        ("OPTIONS", "/prompt", UNKNOWN),
        ("POST", "/prompt/", UNKNOWN),
        ("POST", "//prompt", UNKNOWN),
    ],
)
def test_what_no_row_names(method: str, path: str, found: RouteClass) -> None:
    assert cls(method, path) is found


@pytest.mark.parametrize("path", ["/%71ueue", "/models/..%2Fqueue", "/history/..%2F..%2Fqueue"])
def test_a_path_that_reads_as_the_queue_is_no_way_to_it(path: str) -> None:
    assert cls("GET", path) in {MANAGEMENT, UNLISTED}


def test_where_a_browser_stands_goes_from_every_request() -> None:
    for row in TABLE.rows:
        assert {b"origin", b"sec-fetch-site"} <= row.drop_headers(relay=True)
