"""The helper process: judges bodies that would hold up the agent's loop. `python -m vacancy_edge.helper FD`.

It reads the pages of the agent's memory file, so nothing is copied. A field that has to go is overwritten
with spaces in place, which JSON does not see: cutting would move the rest of up to 64 MiB. Only a value that
is replaced by a longer one (`"keep_alive":-1`) moves what follows it. The process ends when its socket does,
also when the agent was killed.
"""

from __future__ import annotations

import mmap
import os
import socket
import sys
from typing import TYPE_CHECKING

from vacancy_edge.helper_wire import MAX_MESSAGE, Answer, Question, decode_question, encode
from vacancy_edge.judged import judge_edits
from vacancy_edge.refusal import Refusal

if TYPE_CHECKING:
    from vacancy_edge.bodies import Edit

assert sys.platform != "win32"  # noqa: S101 - tells the type checker; the thread lane serves Windows


def answer(question: Question, fd: int) -> Answer:
    """Judge the file `fd`, and edit it."""
    with mmap.mmap(fd, question.length) as pages, memoryview(pages) as body:
        found = judge_edits(question.match(), body, question.content_type, relay=question.relay)
        if isinstance(found, Refusal):
            return Answer(None, found.reason, found.message)
        judged, edits = found
        for start, end, new in edits:
            body[start:end] = new[: end - start].ljust(end - start)
    longer = [edit for edit in edits if edit.growth > 0]
    if not longer:
        return Answer(judged)
    return Answer(judged, length=_grow(fd, question.length, longer))


def _grow(fd: int, length: int, edits: list[Edit]) -> int:
    """Make these edits, from the last to the first, so that each is still where it was."""
    whole = length + sum(edit.growth for edit in edits)
    os.ftruncate(fd, whole)
    with mmap.mmap(fd, whole) as pages:
        for edit in reversed(edits):
            pages.move(edit.end + edit.growth, edit.end, length - edit.end)
            pages[edit.start : edit.end + edit.growth] = edit.new
            length += edit.growth
    return whole


def serve(sock: socket.socket) -> None:
    """Answer questions until the other end is closed."""
    while True:
        message, fds, _flags, _address = socket.recv_fds(sock, MAX_MESSAGE, 1)
        if not message:
            return
        try:
            reply = answer(decode_question.decode(message), fds[0])
        finally:
            for fd in fds:
                os.close(fd)
        sock.sendall(encode(reply))


def main() -> None:
    """Serve on the socket whose descriptor is the only argument."""
    with socket.socket(fileno=int(sys.argv[1])) as sock:
        serve(sock)


if __name__ == "__main__":
    main()
