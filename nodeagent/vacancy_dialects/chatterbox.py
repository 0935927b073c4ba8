"""Routes of two Chatterbox servers. Classes and reasons: docs/routes.md.

They are travisvn/chatterbox-tts-api (a5f46612) and devnen/Chatterbox-TTS-Server (68213e75). One table serves
both, since no path of one means something else to the other. The first has its aliases from
app/core/aliases.py, which are real routes.
"""

from __future__ import annotations

from typing import Final

from vacancy_dialects.routes import EndMark, Route, RouteClass
from vacancy_dialects.rows import GET, POST, Rows

_ITS: Final = Rows()
_SPEECH: Final = ("/audio/speech", "/v1/audio/speech", "/tts")


def _below_speech(path: str) -> tuple[str, ...]:
    return tuple(prefix + path for prefix in _SPEECH)


def _outliving(method: str, *paths: str) -> tuple[Route, ...]:
    """Work that its reply only begins: a job in the server that nobody could follow."""
    return tuple(Route(methods=(method,), path=path, cls=RouteClass.WORK, outlives=True) for path in paths)


_LONG: Final = ("/audio/speech/long", "/v1/audio/speech/long")
_WORK: Final = (
    *_ITS.work(*_SPEECH, *_below_speech("/stream"), end=EndMark.SPEECH),
    *_ITS.form(*_below_speech("/upload"), *_below_speech("/stream/upload"), end=EndMark.SPEECH),
    *_outliving("POST", *_LONG, *(f"{path}/bulk" for path in _LONG)),
    *_outliving("POST", *(f"{path}/{{job_id}}/retry" for path in _LONG)),
    *_outliving("PUT", *(f"{path}/{{job_id}}/resume" for path in _LONG)),
)

_READS: Final = (
    *_ITS.read("/health", "/v1/health", "/ping", "/models", "/v1/models", "/languages", "/v1/languages"),
    *_ITS.read("/voices", "/v1/voices", "/voice-library", "/voice_library", "/voices/all-names"),
    # The other server.
    *_ITS.read("/v1/audio/voices", "/get_predefined_voices", "/api/model-info"),
)

_MANAGEMENT: Final = (
    # What it does just now, and for whom it did what. `/memory` acts when it is read with a query.
    *_ITS.management(GET, "/status", "/v1/status", "/processing", "/processing/status"),
    *_ITS.management(GET, "/status/progress", "/progress", "/status/history", "/history"),
    *_ITS.management(GET, "/status/statistics", "/stats", "/info", "/api/info"),
    *_ITS.management(GET, "/config", "/endpoints", "/routes", "/memory", "/memory/recommendations"),
    *_ITS.management((*GET, "POST"), "/memory/config"),
    *_ITS.management(POST, "/memory/reset", "/status/history/clear"),
    # The owner's voices.
    *_ITS.management(POST, "/voices", "/voices/default", "/voices/cleanup", "/voices/{voice}/aliases"),
    *_ITS.management(("PUT", "DELETE"), "/voices/{voice}", "/voices/default"),
    *_ITS.management(("PUT", "DELETE"), "/voices/{voice}/aliases", "/voices/{voice}/aliases/{alias}"),
    *_ITS.management(GET, "/voices/{voice}/download"),
    # Long jobs: everybody's texts and recordings.
    *_ITS.management((*GET, "DELETE", "PATCH"), *_LONG, *(f"{path}/{{job_id}}" for path in _LONG)),
    *_ITS.management(GET, *(f"{path}/{{job_id}}/download" for path in _LONG)),
    # The other server.
    *_ITS.management(GET, "/api/ui/initial-data", "/get_reference_files", "/outputs/{file}"),
    *_ITS.management(POST, "/save_settings", "/reset_settings", "/restart_server", "/api/unload"),
    *_ITS.management(POST, "/upload_reference", "/upload_predefined_voice"),
)

ROWS: Final[tuple[Route, ...]] = (*_WORK, *_READS, *_MANAGEMENT)
