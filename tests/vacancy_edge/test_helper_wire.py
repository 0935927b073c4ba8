from __future__ import annotations

import pytest

from vacancy_api.reasons import Reason
from vacancy_dialects import BodyShape, RouteClass, table_for
from vacancy_edge import Judged, Refusal
from vacancy_edge.helper_wire import MAX_MESSAGE, Answer, Question, decode_answer, decode_question, encode


@pytest.mark.parametrize("path", [b"/v1/responses", b"/v1/chat/completions", b"/v1/audio/transcriptions"])
def test_a_question_keeps_what_judging_needs(path: bytes):
    route = table_for("openai").classify("POST", path, None).route
    assert route is not None
    question = Question.about(route, 5 << 20, b"a/b", relay=True)
    again = decode_question.decode(encode(question))
    assert again == question
    match = again.match()
    assert match.cls is RouteClass.WORK
    assert match.route is not None
    assert (match.route.shape, match.route.background_refused, match.route.relay_fields) == (
        route.shape,
        route.background_refused,
        route.relay_fields,
    )


def test_the_longest_question_fits_a_message():
    question = Question(1 << 40, BodyShape.MULTIPART, True, ("priority",), b"x" * 65536, False)
    assert len(encode(question)) < MAX_MESSAGE


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (Answer(Judged("é", True, None, 5, 2)), Judged("é", True, None, 5, 2)),
        (Answer(None, Reason.AMBIGUOUS_BODY, "Twice."), Refusal(Reason.AMBIGUOUS_BODY, "Twice.")),
        (Answer(None), Refusal(Reason.BAD_REQUEST, "")),
    ],
)
def test_an_answer_comes_back_as_it_was_given(answer: Answer, verdict: Judged | Refusal):
    assert decode_answer.decode(encode(answer)).verdict() == verdict
