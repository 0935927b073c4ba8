"""The load generator for requests per second: wrk, whose one thread outruns every proxy measured here."""

from __future__ import annotations

import math
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benches.memory import cpu_seconds
from benches.parts import LOOPBACK, PartError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REQUEST_BYTES = 1024
MARK = "VACANCY"
SCRIPT = """\
wrk.method = "POST"
wrk.body = [[{body}]]
wrk.headers["Content-Type"] = "application/json"
{authorization}
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("{mark} %d %d %.3f %d %d\\n", summary.requests, summary.duration,
    latency:percentile(50), e.status, e.connect + e.read + e.write + e.timeout))
end
"""


class LoadError(PartError):
    """The load met errors: a figure of such a run would be a figure of refusals."""


@dataclass(frozen=True, slots=True)
class Load:
    """What one run of the generator saw."""

    per_second: float
    p50_s: float
    cpu_s: float
    """Processor time that the target spent on each request; nan where it is not known."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the load goes."""

    name: str
    port: int
    token: str | None = None
    connections: tuple[int, ...] = (1, 32, 256)
    """How many the load opens to it, a run each."""
    pid: int | None = None
    """Of the process that serves it, where its processor time is asked for."""
    after: Callable[[], None] | None = None
    """Called after each run."""


def request_body() -> str:
    """A chat request of 1 KB."""
    head, tail = '{"model":"bench","messages":[{"role":"user","content":"', '"}],"max_tokens":16}'
    return head + "x" * (REQUEST_BYTES - len(head) - len(tail)) + tail


def program() -> str | None:
    """Where wrk is, if it is."""
    return shutil.which("wrk")


def run(target: Target, *, connections: int, seconds: int, directory: Path) -> Load:
    """Send POSTs for `seconds` over `connections` kept-alive connections.

    Raises:
        LoadError: an answer was not 2xx or 3xx, or a connection failed.
    """
    script = directory / f"wrk-{target.port}.lua"
    header = f'wrk.headers["Authorization"] = "Bearer {target.token}"' if target.token else ""
    script.write_text(SCRIPT.format(body=request_body(), authorization=header, mark=MARK))
    url = f"http://{LOOPBACK}:{target.port}/v1/chat/completions"
    argv = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", str(script), url]
    before = cpu_seconds(target.pid) if target.pid else math.nan
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=seconds + 30)
    spent = cpu_seconds(target.pid) - before if target.pid else math.nan
    return _read(target, done.stdout, spent)


def _read(target: Target, output: str, spent: float) -> Load:
    line = next(line for line in output.splitlines() if line.startswith(MARK))
    requests, micros, p50, refused, failed = (float(word) for word in line.split()[1:])
    if refused or failed or not requests:
        raise LoadError(
            f"{target.name}: {refused:.0f} answers were not 2xx, {failed:.0f} connections failed, "
            f"of {requests:.0f} requests"
        )
    return Load(per_second=requests / (micros / 1e6), p50_s=p50 / 1e6, cpu_s=spent / requests)
