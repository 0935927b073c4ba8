"""A build that takes minutes runs beside the stages that do not need it; the one that does waits for it."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from runner.stage import ROOT, end_group

if TYPE_CHECKING:
    from collections.abc import Sequence


class Ahead:
    """One command, started now. What it says is printed when somebody waits for it."""

    def __init__(self, command: Sequence[str]) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._command = command
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )

    def wait(self, limit_s: float) -> int | None:
        """Its exit code; None when it was ended at `limit_s` seconds from now."""
        print(f"\n--- {' '.join(self._command)}", flush=True)
        started = time.monotonic()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=limit_s)
        code = self._process.returncode
        end_group(self._process)
        self._output.seek(0)
        print(self._output.read().decode(errors="replace").strip())
        self._output.close()
        print(f"waited {time.monotonic() - started:.0f} s for it", flush=True)
        return code

    def end(self) -> None:
        """Nobody waits for it any more."""
        if not self._output.closed:
            end_group(self._process)
            self._output.close()
