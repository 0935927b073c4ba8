"""Everything that somebody else needs to see what is wrong, in one archive, without a secret in it.

Invariant: a part that cannot be made is in the archive with its error; the others are there all the same.
Who asks for diagnostics has a fault already, and an export that fails because of it is worth nothing.
"""

from __future__ import annotations

import io
import platform
import sys
import traceback
from typing import TYPE_CHECKING, Any

import orjson

from vacancy_agent.admin import metrics, report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vacancy_agent.admin.running import Running

CONTENT_TYPE = "application/x-tar"
FOLDER = "vacancy-diagnostics"


def archive(agent: Running, unreachable: Mapping[str, str | None]) -> bytes:
    """The tar file."""
    # Imported here: half a MiB that an agent needs on a bad day alone.
    import tarfile  # noqa: PLC0415 - as above

    wall = agent.host.clock.wall()
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, make in _parts(agent, unreachable).items():
            data = _made(make)
            entry = tarfile.TarInfo(f"{FOLDER}/{name}")
            entry.size, entry.mtime, entry.mode = len(data), int(wall), 0o600
            tar.addfile(entry, io.BytesIO(data))
    return content.getvalue()


def _parts(agent: Running, unreachable: Mapping[str, str | None]) -> dict[str, Callable[[], bytes]]:
    return {
        "about.json": lambda: _json(_about(agent)),
        "status.json": lambda: _json(report.document(agent, unreachable)),
        "config.json": lambda: _json(orjson.loads(agent.config_document)),
        "holds.json": lambda: _json(report.holds(agent)),
        "log.txt": lambda: "".join(f"{line}\n" for line in agent.recent_log()).encode("utf-8", "replace"),
        "metrics.txt": lambda: metrics.scrape(agent)[0],
    }


def _about(agent: Running) -> dict[str, Any]:
    return {
        "version": agent.version,
        "python": sys.version,
        "platform": platform.platform(),
        "missing": agent.ready(),
    }


def _made(make: Callable[[], bytes]) -> bytes:
    try:
        return make()
    except Exception:  # noqa: BLE001 - whatever it is, it is what this archive is about
        return f"this part could not be made:\n{traceback.format_exc()}".encode()


def _json(data: object) -> bytes:
    return orjson.dumps(data, option=orjson.OPT_INDENT_2)
