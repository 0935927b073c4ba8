from __future__ import annotations

import pytest

from vacancy_dialects import BodyShape, EndMark, RouteClass, table_for

WORK, PASS, MANAGEMENT = RouteClass.WORK, RouteClass.PASS_THROUGH, RouteClass.MANAGEMENT
UNLISTED, UNKNOWN = RouteClass.UNLISTED_READ, RouteClass.UNRECOGNISED
TABLE = table_for("chatterbox")
SPEECH = ["/audio/speech", "/v1/audio/speech", "/tts"]


@pytest.mark.parametrize("path", SPEECH)
@pytest.mark.parametrize(
    ("below", "shape"),
    [
        ("", BodyShape.JSON),
        ("/stream", BodyShape.JSON),
        ("/upload", BodyShape.MULTIPART),
        ("/stream/upload", BodyShape.MULTIPART),
    ],
)
def test_speech_is_work_under_each_of_its_names(path: str, below: str, shape: BodyShape) -> None:
    match = TABLE.classify("POST", (path + below).encode(), None)
    assert match.cls is WORK
    assert match.route is not None
    assert (match.route.shape, match.route.end, match.route.outlives) == (shape, EndMark.SPEECH, False)


@pytest.mark.parametrize("prefix", ["", "/v1"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/audio/speech/long"),
        ("POST", "/audio/speech/long/bulk"),
        ("POST", "/audio/speech/long/7/retry"),
        ("PUT", "/audio/speech/long/7/resume"),
    ],
)
def test_work_that_outlives_its_reply(prefix: str, method: str, path: str) -> None:
    match = TABLE.classify(method, (prefix + path).encode(), None)
    assert match.cls is WORK
    assert match.route is not None
    assert match.route.outlives


@pytest.mark.parametrize(
    "path",
    [
        *("/health", "/v1/health", "/ping", "/models", "/v1/models", "/voices", "/v1/voices"),
        *("/voice-library", "/voice_library", "/voices/all-names", "/languages"),
        *("/v1/audio/voices", "/get_predefined_voices", "/api/model-info"),
    ],
)
def test_a_borrowers_reads(path: str) -> None:
    assert TABLE.classify("GET", path.encode(), None).cls is PASS
    assert TABLE.classify("HEAD", path.encode(), None).cls is PASS
    assert TABLE.classify("GET", path.encode(), b"x=1").cls is MANAGEMENT


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/status"),
        ("GET", "/v1/status"),
        ("GET", "/processing"),
        ("GET", "/memory"),
        ("POST", "/memory/reset"),
        ("POST", "/memory/config"),
        ("POST", "/voices"),
        ("DELETE", "/voices/mine"),
        ("PUT", "/voices/mine"),
        ("GET", "/voices/mine/download"),
        ("GET", "/audio/speech/long"),
        ("GET", "/audio/speech/long/7"),
        ("DELETE", "/v1/audio/speech/long/7"),
        ("PATCH", "/audio/speech/long/7"),
        ("GET", "/audio/speech/long/7/download"),
        ("POST", "/save_settings"),
        ("POST", "/restart_server"),
        ("POST", "/api/unload"),
        ("GET", "/outputs/a.wav"),
    ],
)
def test_management(method: str, path: str) -> None:
    assert TABLE.classify(method, path.encode(), None).cls is MANAGEMENT


def test_a_read_that_acts_is_management_with_its_query() -> None:
    assert TABLE.classify("GET", b"/memory", b"cleanup=true&force_cuda_clear=true").cls is MANAGEMENT


@pytest.mark.parametrize(
    ("method", "path", "found"),
    [("GET", "/", UNLISTED), ("GET", "/docs", UNLISTED), ("POST", "/audio/speech/long/7/pause", UNKNOWN)],
)
def test_what_no_row_names(method: str, path: str, found: RouteClass) -> None:
    assert TABLE.classify(method, path.encode(), None).cls is found
