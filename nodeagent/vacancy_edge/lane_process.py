"""Large bodies on Linux: one helper process, kept warm, that is handed the body's memory file.

Invariant: whatever happens to the process (it dies, hangs, cannot start), every question is answered, at the
latest at its deadline. Threads were rejected: the parser holds the interpreter lock for a whole parse (276 ms
for 64 MiB of token ids).

Only the loop's thread touches a lane. One question is with the process at a time; the body budget bounds the
rest.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from vacancy_edge.helper_wire import MAX_MESSAGE, Question, decode_answer, encode
from vacancy_edge.refusals import helper_lost

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from vacancy_edge.bodies import Judged
    from vacancy_edge.refusal import Refusal
    from vacancy_http.body import Body

assert sys.platform != "win32"  # noqa: S101 - tells the type checker; the thread lane serves Windows

_REAP_EVERY_S: Final = 0.05


@dataclass(slots=True)
class _Job:
    question: Question
    body: Body
    done: Callable[[Judged | Refusal], None]


class _Process:
    """A running helper and our end of its socket."""

    def __init__(self) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self.popen = subprocess.Popen(
                    [sys.executable, "-P", "-m", "vacancy_edge.helper", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,  # a Ctrl-C at the terminal is the agent's to handle
                )
            except OSError:
                self.socket.close()
                raise
        self.socket.setblocking(False)


START_S = 20.0
"""The first body waits this much longer: its reader has to start, which takes its time on a busy machine."""


class ProcessLane:
    """The helper process of one loop, started with the first large body."""

    def __init__(self, loop: asyncio.AbstractEventLoop, deadline_s: float) -> None:
        self._loop = loop
        self._deadline_s = deadline_s
        self._jobs: deque[_Job] = deque()
        self._current: _Job | None = None
        self._process: _Process | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._closed = False
        self.starts = 0
        """Processes started so far."""

    @property
    def pid(self) -> int | None:
        """The helper's process id while there is one."""
        return None if self._process is None else self._process.popen.pid

    def submit(self, question: Question, body: Body, done: Callable[[Judged | Refusal], None]) -> None:
        """Ask; `done` is called on the loop, once, and never from within this call."""
        self._jobs.append(_Job(question, body, done))
        if self._current is None:
            self._loop.call_soon(self._next)

    def close(self) -> None:
        """End the helper; what is still asked is refused."""
        self._closed = True
        popen = None if self._process is None else self._process.popen
        self._drop("the agent is stopping")
        if popen is not None:
            popen.wait(timeout=5)

    def _next(self) -> None:
        while self._current is None and self._jobs:
            job = self._jobs.popleft()
            fd = job.body.fileno()
            if fd is None or self._closed:
                job.done(helper_lost("it is gone"))
            else:
                self._ask(job, fd)

    def _ask(self, job: _Job, fd: int) -> None:
        seconds = self._deadline_s + (START_S if self._process is None else 0.0)
        try:
            process = self._process or self._start()
            socket.send_fds(process.socket, [encode(job.question)], [fd])
        except OSError as error:
            self._forget()
            job.done(helper_lost(f"its reader could not be asked ({error.strerror or error})"))
            return
        self._current = job
        self._deadline = self._loop.call_later(seconds, self._drop, "reading it took too long")

    def _start(self) -> _Process:
        self._process = process = _Process()
        self.starts += 1
        self._loop.add_reader(process.socket.fileno(), self._readable)
        return process

    def _readable(self) -> None:
        if self._process is None:
            return
        try:
            message = self._process.socket.recv(MAX_MESSAGE)
            verdict = self._verdict(message) if message else None
        except BlockingIOError:
            return
        except (OSError, msgspec.MsgspecError):
            verdict = None
        if verdict is None:
            self._drop("its reader died")
        else:
            self._finish(verdict)

    def _verdict(self, message: bytes) -> Judged | Refusal:
        answer = decode_answer.decode(message)
        if answer.length is not None and self._current is not None:
            self._current.body.grown(answer.length)
        return answer.verdict()

    def _drop(self, why: str) -> None:
        self._forget()
        self._finish(helper_lost(why))

    def _finish(self, verdict: Judged | Refusal) -> None:
        job, self._current = self._current, None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if job is not None:
            job.done(verdict)
        self._next()

    def _forget(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        self._loop.remove_reader(process.socket.fileno())
        process.socket.close()
        process.popen.kill()
        self._reap(process.popen)

    def _reap(self, popen: subprocess.Popen[bytes]) -> None:
        if popen.poll() is None and not self._loop.is_closed():
            self._loop.call_later(_REAP_EVERY_S, self._reap, popen)
