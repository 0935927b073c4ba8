"""The helper process: judges bodies that would hold up the agent's loop. `python -m vacancy_edge.helper FD`.

It reads the pages of the agent's memory file, so nothing is copied. A field that has to go is overwritten
with spaces in place, which JSON does not see: cutting would move the rest of up to 64 MiB. The process ends
when its socket does, also when the agent was killed.
"""

from __future__ import annotations

import mmap
import os
import socket
import sys

from vacancy_edge.helper_wire import MAX_MESSAGE, Answer, Question, decode_question, encode
from vacancy_edge.judged import judge_spans
from vacancy_edge.refusal import Refusal

assert sys.platform != "win32"  # noqa: S101 - tells the type checker; the thread lane serves Windows


def answer(question: Question, fd: int) -> Answer:
    """Judge the file `fd`."""
    with mmap.mmap(fd, question.length) as pages, memoryview(pages) as body:
        judged = judge_spans(question.match(), body, question.content_type, relay=question.relay)
        if isinstance(judged, Refusal):
            return Answer(None, judged.reason, judged.message)
        for start, end in judged[1]:
            body[start:end] = b" " * (end - start)
        return Answer(judged[0])


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
