from __future__ import annotations

import socket
import subprocess
import sys

import pytest

if sys.platform != "linux":
    pytest.skip("the helper process is Linux's", allow_module_level=True)

from typing import TYPE_CHECKING

from vacancy_api.reasons import Reason
from vacancy_dialects import BodyShape
from vacancy_edge import Judged
from vacancy_edge.helper import answer
from vacancy_edge.helper_wire import Answer, Question, decode_answer, encode

if TYPE_CHECKING:
    from pathlib import Path

BODY = b'{"model":"a","priority": 5,"x":[1]}'


def question(body: bytes, *, relay: bool = False) -> Question:
    return Question(len(body), BodyShape.JSON, False, ("priority",), None, relay)


@pytest.mark.parametrize(
    ("body", "relay", "said", "left"),
    [
        (BODY, False, Answer(Judged("a")), b'{"model":"a"              ,"x":[1]}'),
        (BODY, True, Answer(Judged("a")), BODY),
        (b'{"priority":5}', False, Answer(Judged()), b"{            }"),
    ],
)
def test_a_field_is_blanked_in_the_file_itself(
    tmp_path: Path, body: bytes, relay: bool, said: Answer, left: bytes
):
    path = tmp_path / "body"
    path.write_bytes(body)
    with path.open("r+b") as file:
        assert answer(question(body, relay=relay), file.fileno()) == said
    assert path.read_bytes() == left


def test_a_refusal_leaves_the_file_alone(tmp_path: Path):
    body = b'{"priority":1,"model":"a","model":"b"}'
    (tmp_path / "body").write_bytes(body)
    with (tmp_path / "body").open("r+b") as file:
        said = answer(question(body), file.fileno())
    assert (said.judged, said.reason) == (None, Reason.AMBIGUOUS_BODY)
    assert (tmp_path / "body").read_bytes() == body


@pytest.mark.component
def test_it_serves_until_its_socket_is_closed(tmp_path: Path):
    (tmp_path / "body").write_bytes(BODY)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    argv = [sys.executable, "-P", "-m", "vacancy_edge.helper", str(theirs.fileno())]
    with ours, subprocess.Popen(argv, pass_fds=(theirs.fileno(),)) as process:
        theirs.close()
        for _ in range(3):
            with (tmp_path / "body").open("r+b") as file:
                socket.send_fds(ours, [encode(question(BODY))], [file.fileno()])
            assert decode_answer.decode(ours.recv(1000)) == Answer(Judged("a"))
        ours.close()
        assert process.wait(timeout=20) == 0
