from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standins.comfyui_recorded import NEW, OLD, body
from vacancy_agent.core.parse.comfyui import ComfyAnswerError
from vacancy_agent.core.parse.comfyui_queue import Queued, QueueScan

EMPTY = b'{"queue_running": [], "queue_pending": []}'


def scan(answer: bytes, size: int = 1 << 16) -> list[Queued]:
    queue = QueueScan()
    found = [entry for at in range(0, len(answer), size) for entry in queue.feed(answer[at : at + size])]
    queue.finish()
    return found


@pytest.mark.parametrize("release", [OLD, NEW])
@pytest.mark.parametrize("size", [1, 2, 7, 64, 1 << 16])
def test_a_recorded_queue_is_read_in_pieces_of_any_size(release: str, size: int) -> None:
    answer = body(release, "queue_running_pending")
    document = json.loads(answer)
    wanted = [Queued(entry[1], True) for entry in document["queue_running"]]
    wanted += [Queued(entry[1], False) for entry in document["queue_pending"]]
    assert len(wanted) == 3
    assert scan(answer, size) == wanted
    assert scan(body(release, "queue_empty"), size) == []


ids = st.text(max_size=12)
values = st.recursive(
    st.none() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
entries = st.tuples(st.integers(), ids, values, values).map(list)


@given(st.lists(entries, max_size=3), st.lists(entries, max_size=3), st.integers(1, 40), st.booleans())
def test_whatever_the_graphs_hold_only_the_ids_are_taken(
    running: list[list[object]], pending: list[list[object]], size: int, plain: bool
) -> None:
    document = {"queue_running": running, "more": {"queue_pending": [[1]]}, "queue_pending": pending}
    answer = json.dumps(document, ensure_ascii=plain).encode()
    wanted = [Queued(str(entry[1]), True) for entry in running]
    wanted += [Queued(str(entry[1]), False) for entry in pending]
    assert scan(answer, size) == wanted


def test_an_id_is_there_as_soon_as_it_came() -> None:
    queue = QueueScan()
    assert queue.feed(b'{"queue_running": [[4, "one", {"1": ') == [Queued("one", True)]
    assert queue.feed(b'{"image": "' + b"A" * 100_000) == []
    assert queue.feed(b"AA\\") == []
    assert queue.feed(b'""}}], [5, "two"]], "queue_pending": []}') == [Queued("two", True)]
    queue.finish()


@pytest.mark.parametrize("cut", range(1, len(EMPTY)))
def test_a_queue_that_breaks_off_is_none(cut: int) -> None:
    with pytest.raises(ComfyAnswerError):
        scan(EMPTY[:cut])


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"{}",
        b'{"queue_running": []}',
        b'{"queue_running": {}, "queue_pending": []}',
        b'{"queue_running": [{"id": "x"}], "queue_pending": []}',
        b'{"queue_running": [[1]], "queue_pending": []}',
        b'{"queue_running": [[1, 2]], "queue_pending": []}',
        b'{"queue_running": [[]], "queue_pending": []}',
        b'{"queue_running": [[1, "' + b"x" * 300 + b'"]], "queue_pending": []}',
        EMPTY + b"]",
        b"500 Internal Server Error",
    ],
)
def test_what_is_no_queue_is_never_an_empty_one(answer: bytes) -> None:
    with pytest.raises(ComfyAnswerError):
        scan(answer)


def test_sixteen_mib_of_graph_are_passed_over() -> None:
    answer = json.dumps({"queue_running": [[1, "a", {"x": "A" * (16 << 20)}]], "queue_pending": []}).encode()
    assert scan(answer) == [Queued("a", True)]
