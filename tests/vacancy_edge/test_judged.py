from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vacancy_api.reasons import Reason
from vacancy_dialects import Match, RouteClass, table_for
from vacancy_edge import Judged, Refusal, judge_body, judge_head, retyped
from vacancy_edge.bodies import MAX_MODEL_NAME
from vacancy_edge.judged import judge_edits, judge_plain, plain_model

CHAT = b"/v1/chat/completions"


def match_of(path: bytes = CHAT, dialect: str = "openai", method: str = "POST") -> Match:
    return table_for(dialect).classify(method, path, None)


def judge(
    body: bytes, *, path: bytes = CHAT, dialect: str = "openai", relay: bool = False
) -> Judged | Refusal:
    return judge_body(match_of(path, dialect), body, b"application/json", None, None, relay=relay)


@pytest.mark.parametrize(
    ("body", "judged"),
    [
        (b"{}", Judged()),
        (b'{"model":"a"}', Judged("a")),
        (b'{"model":null}', Judged()),
        (b'{"model":""}', Judged("")),
        (b'{"model":"\\u00e9\\n"}', Judged("é\n")),
        (b'{"model":"a","stream":true}', Judged("a", stream=True)),
        (b'{"model":"a","stream":false}', Judged("a")),
        (b'{"model":"a","stream":1}', Judged("a")),
        (b'{"model":"a","max_tokens":5,"n":2}', Judged("a", max_tokens=5, n=2)),
        (b'{"max_completion_tokens":5}', Judged(max_tokens=5)),
        (b'{"max_output_tokens":5}', Judged(max_tokens=5)),
        (b'{"n_predict":5}', Judged(max_tokens=5)),
        (b'{"n_predict":-1}', Judged()),
        (b'{"max_tokens":"5","n":1.5}', Judged()),
        (b'{"max_tokens":null,"n":1e400}', Judged()),
        (b'{"max_tokens":99999999999999999999999}', Judged()),
        (b'{"model":"a","background":true}', Judged("a")),
    ],
)
def test_what_a_body_asks_for(body: bytes, judged: Judged):
    asked = judge(body)
    if b"9" * 20 in body:  # the size of a number is the server's business
        assert isinstance(asked, Judged)
    else:
        assert asked == judged
    assert judge_body(match_of(), memoryview(body), None, None, None) == asked


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", Reason.BAD_REQUEST),
        (b"[]", Reason.BAD_REQUEST),
        (b'{"model":5}', Reason.BAD_REQUEST),
        (b'{"model":["a"]}', Reason.BAD_REQUEST),
        (b'{"model":"%b"}' % (b"m" * (MAX_MODEL_NAME + 1)), Reason.BAD_REQUEST),
        (b'{"model":"a","MODEL":"b"}', Reason.AMBIGUOUS_BODY),
        (b'{"model":"a","model":"b"}', Reason.AMBIGUOUS_BODY),
        (b'{"Priority":-5}', Reason.AMBIGUOUS_BODY),
    ],
)
def test_what_is_refused(body: bytes, reason: Reason):
    refused = judge(body)
    assert isinstance(refused, Refusal)
    assert refused.reason is reason


@pytest.mark.parametrize("path", [b"/v1/responses"])
@pytest.mark.parametrize("dialect", ["openai", "llamacpp"])
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"true", Reason.BACKGROUND_REFUSED),
        (b'"true"', Reason.BAD_REQUEST),
        (b"1", Reason.BAD_REQUEST),
        (b"[]", Reason.BAD_REQUEST),
        (b"false", None),
        (b"null", None),
    ],
)
def test_background_responses(path: bytes, dialect: str, value: bytes, reason: Reason | None):
    answer = judge(b'{"model":"a","background":%b}' % value, path=path, dialect=dialect)
    assert (answer.reason if isinstance(answer, Refusal) else None) == reason


def test_a_borrowers_priority_is_cut_out_and_the_gateways_is_not():
    body = b'{"temperature": 1.50, "priority": -7, "model": "a\\u00e9"}'
    borrowed = judge(body)
    assert isinstance(borrowed, Judged)
    assert borrowed.forward == b'{"temperature": 1.50, "model": "a\\u00e9"}'
    assert judge(body, relay=True) == Judged("aé")
    assert judge(body, dialect="llamacpp") == Judged("aé")


def test_a_nested_priority_stays():
    assert judge(b'{"model":"a","x":{"priority":1}}') == Judged("a")


@pytest.mark.parametrize(
    ("path", "content_type", "again"),
    [
        (CHAT, b"application/x-www-form-urlencoded", True),
        (CHAT, b" Text/Plain ; charset=utf-8", True),
        (CHAT, b"application/json", False),
        (CHAT, None, False),
        (b"/v1/audio/transcriptions", b"text/plain", False),
    ],
)
def test_a_careless_type_is_put_right_on_json_routes_only(
    path: bytes, content_type: bytes | None, again: bool
):
    match = table_for("openai").classify("POST", path, None)
    assert retyped(match, content_type) is again


@pytest.mark.parametrize(
    ("path", "content_type", "content_encoding", "query", "reason"),
    [
        (CHAT, None, None, None, None),
        (CHAT, b"application/json", None, b"beta=true", None),
        (CHAT, b"Application/JSON; charset=UTF-8", b"identity", None, None),
        (CHAT, b"application/json;charset=utf-8", b"", None, None),
        (CHAT, b"application/vnd.api+json", b" Identity ", None, None),
        (CHAT, b"application/json; charset=utf-16", None, None, Reason.BAD_REQUEST),
        (CHAT, b"application/json; charset=latin1", None, None, Reason.BAD_REQUEST),
        (CHAT, b'application/json; charset="utf-8"', None, None, None),
        (CHAT, b"application/json; q=1; charset=utf8 ;", None, None, None),
        (CHAT, b"text/json", None, None, None),
        (CHAT, b"application/json; charset=utf-8; charset=utf-7", None, None, Reason.BAD_REQUEST),
        (CHAT, b"application/json; x-charset=utf-8; charset=utf-7", None, None, Reason.BAD_REQUEST),
        (CHAT, b"application/json; charset*=utf-7''", None, None, Reason.BAD_REQUEST),
        (CHAT, b'application/json; charset="utf-8', None, None, Reason.BAD_REQUEST),
        (CHAT, b"application/json; charset = utf-7", None, None, Reason.BAD_REQUEST),
        (CHAT, b"application/json, multipart/form-data; boundary=x", None, None, Reason.BAD_REQUEST),
        (CHAT, b"multipart/form-data,x+json; boundary=x", None, None, Reason.BAD_REQUEST),
        (CHAT, b"multipart/form-data; boundary=x; y=+json", None, None, Reason.BAD_REQUEST),
        (CHAT, b"multipart/x+json", None, None, Reason.BAD_REQUEST),
        (CHAT, b"application/json" + b";  " * 2000 + b"=", None, None, Reason.BAD_REQUEST),
        (CHAT, b"multipart/form-data; boundary=x", None, None, Reason.BAD_REQUEST),
        (CHAT, b"text/plain;charset=UTF-8", None, None, None),
        (CHAT, b"application/x-www-form-urlencoded", None, None, None),
        (CHAT, b"text/html", None, None, Reason.BAD_REQUEST),
        (CHAT, b"", None, None, Reason.BAD_REQUEST),
        (CHAT, b"application/json", b"gzip", None, Reason.CONTENT_ENCODING),
        (CHAT, b"application/json", b"identity, zstd", None, Reason.CONTENT_ENCODING),
        (CHAT, b"application/json", b"identity, identity", None, Reason.CONTENT_ENCODING),
        (b"/v1/audio/transcriptions", b"multipart/form-data; boundary=x", None, None, None),
        (b"/v1/audio/transcriptions", b"multipart/form-data; boundary=x", None, b"", None),
        (
            b"/v1/audio/transcriptions",
            b"multipart/form-data; boundary=x",
            None,
            b"model=b",
            Reason.BAD_REQUEST,
        ),
        (b"/v1/audio/transcriptions", b"multipart/form-data", None, None, Reason.BAD_REQUEST),
        (b"/v1/audio/transcriptions", b"application/json", None, None, Reason.BAD_REQUEST),
        (b"/v1/audio/transcriptions", None, None, None, Reason.BAD_REQUEST),
    ],
)
def test_heads(
    path: bytes,
    content_type: bytes | None,
    content_encoding: bytes | None,
    query: bytes | None,
    reason: Reason | None,
):
    refused = judge_head(match_of(path), content_type, content_encoding, query)
    assert (refused and refused.reason) == reason
    if refused is not None:
        assert judge_body(match_of(path), b"{}", content_type, content_encoding, query) == refused


def test_other_classes_are_not_read():
    match = match_of(b"/sleep")
    assert match.cls is RouteClass.MANAGEMENT
    assert judge_body(match, b"\x00", b"text/plain", b"gzip", b"level=1") == Judged()
    assert judge_edits(match, b"\x00", None, relay=False) == (Judged(), [])


FORM = b'--x\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n--x--\r\n'


@pytest.mark.parametrize(
    ("name", "value", "relay", "answer"),
    [
        (b"model", b"whisper", False, Judged("whisper")),
        (b"stream", b"true", False, Judged(stream=True)),
        (b"stream", b"false", False, Judged()),
        (b"language", b"en", False, Judged()),
        (b"priority", b"1", True, Judged()),
        (b"priority", b"1", False, Reason.BAD_REQUEST),
        (b"Model", b"whisper", False, Reason.AMBIGUOUS_BODY),
    ],
)
def test_forms(name: bytes, value: bytes, relay: bool, answer: Judged | Reason):
    match = match_of(b"/v1/audio/transcriptions")
    asked = judge_plain(match, FORM % (name, value), b"multipart/form-data; boundary=x", relay=relay)
    assert (asked.reason if isinstance(asked, Refusal) else asked) == answer


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["model", "priority", "stream", "x", "y", "é"]),
        st.sampled_from(["a", 1, 2.5, True, None, {"priority": 3}, ["priority"], '"priority":1']),
    ),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :\t")]),
    st.booleans(),
    st.booleans(),
)
def test_a_stripped_body_is_the_same_object_less_the_field(
    asked: dict[str, object], separators: tuple[str, str], escaped: bool, relay: bool
):
    if not isinstance(asked.get("model", "a"), str | None):
        asked["model"] = "a"
    body = json.dumps(asked, separators=separators, ensure_ascii=escaped).encode()
    judged = judge(body, relay=relay)
    assert isinstance(judged, Judged)
    kept = {key: value for key, value in asked.items() if relay or key != "priority"}
    assert json.loads(judged.forward or body) == kept
    assert (judged.forward is None) == (kept == asked)


@given(
    st.dictionaries(
        st.sampled_from(["model", "stream", "background", "priority", "max_tokens", "n", "messages"]),
        st.sampled_from([None, True, False, 1, "a", "", ["x"], "m" * (MAX_MODEL_NAME + 1)]),
    ),
    st.booleans(),
    st.sampled_from(["/v1/chat/completions", "/v1/responses", "/v1/embeddings"]),
)
def test_without_counts_everything_else_is_the_same(asked: dict[str, object], relay: bool, path: str):
    match, body = match_of(path.encode()), json.dumps(asked).encode()
    full = judge_plain(match, body, None, relay)
    short = judge_plain(match, body, None, relay, counts=False)
    if isinstance(full, Refusal) or isinstance(short, Refusal):
        assert short == full
    else:
        assert (short.model, short.stream, short.forward) == (full.model, full.stream, full.forward)


KEYS = ("model", "stream", "messages", "priority", "background", "max_tokens", "Model", "é")
VALUES = (
    '"m"',
    "null",
    "true",
    "5",
    '"a\\u0062"',
    '"é"',
    '["x",{"model":"n"}]',
    '"' + "x" * 2000 + '"',
    "1e400",
)


@pytest.mark.parametrize("seed", range(20))
def test_one_look_says_what_reading_says_or_nothing(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - the same each time
    route = match_of()
    assert route.route is not None
    barred = route.route.relay_fields | {"background"}
    told = 0
    for _ in range(400):
        colon = rng.choice((":", ": "))
        keys = [rng.choice(KEYS[: rng.choice((3, 8))]) for _ in range(rng.randrange(5))]
        pairs = [f'"{key}"{colon}{rng.choice(VALUES)}' for key in keys]
        if rng.random() < 0.5:
            pairs.insert(0, f'"model"{colon}"m"')
        body = ("{" + rng.choice((",", ", ")).join(pairs) + "}" + rng.choice(("", "", " ", "x"))).encode()
        judged = judge_plain(route, body, b"application/json", False, counts=False)
        model = plain_model(body, barred)
        if model is not None:
            told += 1
            assert isinstance(judged, Judged)
            assert (judged.model, judged.forward, judged.prompt, judged.runner) == (model, None, None, None)
    assert told > 20
