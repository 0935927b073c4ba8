from __future__ import annotations

import socket
import subprocess
import sys

import pytest

if sys.platform != "linux":
    pytest.skip("the helper process is Linux's", allow_module_level=True)

import json
import tempfile
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from vacancy_api.reasons import Reason
from vacancy_dialects import BodyShape, RunnerAsk, table_for
from vacancy_edge import Judged, Refusal, judge_body
from vacancy_edge.helper import answer
from vacancy_edge.helper_wire import Answer, Question, decode_answer, encode

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


def edited_in_place(path: Path, body: bytes, route: str, dialect: str = "ollama") -> tuple[Answer, bytes]:
    path.write_bytes(body)
    match = table_for(dialect).classify("POST", route.encode(), None)
    assert match.route is not None
    with path.open("r+b") as file:
        said = answer(Question.about(match.route, len(body), None, relay=False), file.fileno())
    return said, path.read_bytes()


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (b'{"model":"a","keep_alive":"24h","x":1}', b'{"model":"a","keep_alive":1800 ,"x":1}'),
        (b'{"model":"a","keep_alive":9999,"x":1}', b'{"model":"a","keep_alive":1800,"x":1}'),
        (b'{"model":"a","keep_alive":-1,"x":1}', b'{"model":"a","keep_alive":1800,"x":1}'),
        (b'{"model":"a","x":1,"keep_alive":-1}', b'{"model":"a","x":1,"keep_alive":1800}'),
        (b'{"model":"a","keep_alive":5}', b'{"model":"a","keep_alive":5}'),
    ],
)
def test_a_value_is_replaced_in_the_file_which_may_get_longer(tmp_path: Path, body: bytes, left: bytes):
    said, found = edited_in_place(tmp_path / "body", body, "/api/chat")
    assert found == left
    assert said.length == (len(left) if len(left) > len(body) else None)
    assert said.judged is not None
    assert said.judged.model == "a:latest"
    assert said.judged.runner == RunnerAsk(v1=False)


FIELDS = st.dictionaries(
    st.sampled_from(["model", "keep_alive", "prompt", "options", "x"]),
    st.sampled_from(["a", "", -1, 0, 1e9, "24h", "-1s", None, {"num_ctx": 5}, "m:cloud"]),
)


@settings(max_examples=60, deadline=None)
@given(
    FIELDS,
    st.sampled_from([(",", ":"), (" , ", " : ")]),
    st.sampled_from(["/api/generate", "/v1/completions"]),
)
def test_a_large_body_gets_the_answer_of_a_small_one(
    asked: dict[str, object], separators: tuple[str, str], route: str
):
    body = json.dumps(asked, separators=separators).encode()
    small = judge_body(table_for("ollama").classify("POST", route.encode(), None), body, None, None, None)
    with tempfile.TemporaryDirectory() as folder:
        said, left = edited_in_place(Path(folder) / "body", body, route)
    large = said.verdict()
    if isinstance(small, Refusal) or isinstance(large, Refusal):
        assert large == small
        return
    assert msgspec.structs.replace(small, forward=None) == large
    assert json.loads(left) == json.loads(body if small.forward is None else small.forward)


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
