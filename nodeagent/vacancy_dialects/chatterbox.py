"""Routes of two Chatterbox servers. Classes and reasons: docs/routes.md.

They are travisvn/chatterbox-tts-api (a5f46612) and devnen/Chatterbox-TTS-Server (68213e75). One table serves
both, since no path of one means something else to the other. The first has its aliases from
app/core/aliases.py, which are real routes.
"""

from __future__ import annotations

from typing import Final

from vacancy_dialects.routes import BodyShape, EndMark, QueryRule, Route, RouteClass

_GET: Final = ("GET", "HEAD")
_SPEECH: Final = ("/audio/speech", "/v1/audio/speech", "/tts")


def _below_speech(path: str) -> tuple[str, ...]:
    return tuple(prefix + path for prefix in _SPEECH)


def _work(*paths: str) -> tuple[Route, ...]:
    return tuple(
        Route(
            methods=("POST",),
            path=path,
            cls=RouteClass.WORK,
            shape=BodyShape.JSON,
            query=QueryRule.DROP,
            end=EndMark.SPEECH,
        )
        for path in paths
    )


def _form(*paths: str) -> tuple[Route, ...]:
    return tuple(
        Route(
            methods=("POST",),
            path=path,
            cls=RouteClass.WORK,
            shape=BodyShape.MULTIPART,
            query=QueryRule.REFUSE,
            end=EndMark.SPEECH,
        )
        for path in paths
    )


def _outliving(method: str, *paths: str) -> tuple[Route, ...]:
    """Work that its reply only begins: a job in the server that nobody could follow."""
    return tuple(Route(methods=(method,), path=path, cls=RouteClass.WORK, outlives=True) for path in paths)


def _read(*paths: str) -> tuple[Route, ...]:
    return tuple(
        Route(methods=_GET, path=path, cls=RouteClass.PASS_THROUGH, query=QueryRule.MANAGEMENT)
        for path in paths
    )


def _management(methods: tuple[str, ...], *paths: str) -> tuple[Route, ...]:
    return tuple(Route(methods=methods, path=path, cls=RouteClass.MANAGEMENT) for path in paths)


_LONG: Final = ("/audio/speech/long", "/v1/audio/speech/long")
_WORK: Final = (
    *_work(*_SPEECH, *_below_speech("/stream")),
    *_form(*_below_speech("/upload"), *_below_speech("/stream/upload")),
    *_outliving("POST", *_LONG, *(f"{path}/bulk" for path in _LONG)),
    *_outliving("POST", *(f"{path}/{{job_id}}/retry" for path in _LONG)),
    *_outliving("PUT", *(f"{path}/{{job_id}}/resume" for path in _LONG)),
)

_READS: Final = (
    *_read("/health", "/v1/health", "/ping", "/models", "/v1/models", "/languages", "/v1/languages"),
    *_read("/voices", "/v1/voices", "/voice-library", "/voice_library", "/voices/all-names"),
    # The other server.
    *_read("/v1/audio/voices", "/get_predefined_voices", "/api/model-info"),
)

_MANAGEMENT: Final = (
    # What it does just now, and for whom it did what. `/memory` acts when it is read with a query.
    *_management(_GET, "/status", "/v1/status", "/processing", "/processing/status"),
    *_management(_GET, "/status/progress", "/progress", "/status/history", "/history"),
    *_management(_GET, "/status/statistics", "/stats", "/info", "/api/info"),
    *_management(_GET, "/config", "/endpoints", "/routes", "/memory", "/memory/recommendations"),
    *_management((*_GET, "POST"), "/memory/config"),
    *_management(("POST",), "/memory/reset", "/status/history/clear"),
    # The owner's voices.
    *_management(("POST",), "/voices", "/voices/default", "/voices/cleanup", "/voices/{voice}/aliases"),
    *_management(("PUT", "DELETE"), "/voices/{voice}", "/voices/default"),
    *_management(("PUT", "DELETE"), "/voices/{voice}/aliases", "/voices/{voice}/aliases/{alias}"),
    *_management(_GET, "/voices/{voice}/download"),
    # Long jobs: everybody's texts and recordings.
    *_management((*_GET, "DELETE", "PATCH"), *_LONG, *(f"{path}/{{job_id}}" for path in _LONG)),
    *_management(_GET, *(f"{path}/{{job_id}}/download" for path in _LONG)),
    # The other server.
    *_management(_GET, "/api/ui/initial-data", "/get_reference_files", "/outputs/{file}"),
    *_management(("POST",), "/save_settings", "/reset_settings", "/restart_server", "/api/unload"),
    *_management(("POST",), "/upload_reference", "/upload_predefined_voice"),
)

ROWS: Final[tuple[Route, ...]] = (*_WORK, *_READS, *_MANAGEMENT)
