"""What Ollama's bodies ask for; whatever is passed on is what a reader like Go's takes from it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standins import go_reader
from vacancy_api.reasons import Reason
from vacancy_dialects import RouteClass, RunnerAsk, canonical_model, table_for
from vacancy_edge import Judged, Refusal, judge_body
from vacancy_edge.keep_alive import MAX_KEEP_ALIVE
from vacancy_edge.ollama_body import ollama_name

GENERATE, CHAT, EMBED, SHOW = "/api/generate", "/api/chat", "/api/embed", "/api/show"
V1 = "/v1/chat/completions"
NATIVE = (GENERATE, CHAT, EMBED)
PLAIN = RunnerAsk(v1=False)


def judge(body: bytes | object, path: str = GENERATE) -> Judged | Refusal:
    match = table_for("ollama").classify("POST", path.encode(), None)
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = judge_body(match, raw, None, None, None)
    assert judge_body(match, memoryview(raw), None, None, None) == answer
    return answer


def judged(body: bytes | object, path: str = GENERATE) -> Judged:
    answer = judge(body, path)
    assert isinstance(answer, Judged), answer
    return answer


def reason(body: bytes | object, path: str = GENERATE) -> Reason | None:
    answer = judge(body, path)
    return answer.reason if isinstance(answer, Refusal) else None


class TestNames:
    @pytest.mark.parametrize("path", [*NATIVE, V1, SHOW])
    def test_a_name_is_judged_in_its_one_spelling(self, path: str):
        assert judged({"model": "Library/SMALL"}, path).model == "small:latest"
        assert judged({"model": None}, path).model is None
        assert judged({}, path).model is None

    @pytest.mark.parametrize("path", [*NATIVE, V1, SHOW, "/v1/messages", "/v1/responses", "/v1/embeddings"])
    @pytest.mark.parametrize("name", ["big:cloud", "big:120b-Cloud", " big:cloud\t", "ns/big: cloud"])
    def test_what_leaves_the_machine_is_refused_everywhere(self, path: str, name: str):
        assert reason({"model": name}, path) is Reason.CLOUD_MODEL

    def test_the_old_key_of_show_counts_too(self):
        assert judged({"name": "small"}, SHOW) == Judged("small:latest", cls=RouteClass.PASS_THROUGH)
        assert judged({"model": "", "name": "small"}, SHOW).model is not None
        assert reason({"model": "small", "name": "big:cloud"}, SHOW) is Reason.CLOUD_MODEL
        assert reason({"name": 5}, SHOW) is Reason.BAD_REQUEST

    def test_a_source_is_refused_as_releases_differ(self):
        assert reason({"model": "small:local"}) is Reason.AMBIGUOUS_BODY

    @pytest.mark.parametrize("path", [*NATIVE, V1, SHOW])
    @pytest.mark.parametrize(
        "body",
        [
            b'{"model":"small","MODEL":"huge"}',
            b'{"model":"small","model":"huge"}',
            b'{"MODEL":"huge"}',
            b'{"model":"small"}{"model":"huge"}',
            b'{"model":"small"} huge',
            b'{"model":"small","mod\\u0065l":"huge"}',
            b'{"model":"small","Options":{"num_ctx":9}}',
            b'{"model":"small","Keep_Alive":-1}',
            '{"model":"small","\u212aeep_alive":-1}'.encode(),
            b'{"model":"small","PROMPT":""}',
            b'{"model":"small","Messages":[]}',
            '{"model":"small","\u017fhift":true}'.encode(),
        ],
    )
    def test_what_go_would_read_differently(self, path: str, body: bytes):
        assert reason(body, path) is Reason.AMBIGUOUS_BODY

    def test_a_form_is_judged_alike(self):
        match = table_for("ollama").classify("POST", b"/v1/audio/transcriptions", None)
        form = b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\n%b\r\n--x--\r\n'
        kind = b"multipart/form-data; boundary=x"
        assert judge_body(match, form % b"Small", kind, None, None) == Judged(
            "small:latest", runner=RunnerAsk(v1=True)
        )
        refused = judge_body(match, form % b"big:cloud", kind, None, None)
        assert isinstance(refused, Refusal)
        assert refused.reason is Reason.CLOUD_MODEL

    def test_a_name_alone(self):
        assert ollama_name("Small") == "small:latest"
        assert isinstance(ollama_name("x:local"), Refusal)


class TestKeepAlive:
    @pytest.mark.parametrize("path", NATIVE)
    @pytest.mark.parametrize("value", [b"-1", b"  1e9", b'"24h"', b'"-1s" ', b"1801"])
    def test_only_the_value_changes(self, path: str, value: bytes):
        body = b' {"model":"m", "keep_alive":%b,"prompt":"x" }\n'
        forward = judged(body % value, path).forward
        assert forward == body % value.replace(value.strip(), b"1800")

    @pytest.mark.parametrize("value", [0, 1, 300, "5m", None, 1800])
    def test_within_bounds_nothing_changes(self, value: object):
        assert judged({"model": "m", "prompt": "x", "keep_alive": value}).forward is None

    def test_where_ollama_has_none_it_is_left(self):
        assert judged({"model": "m", "keep_alive": -1}, V1) == Judged("m:latest", runner=RunnerAsk(v1=True))
        assert judged({"model": "m", "keep_alive": "never"}, SHOW).forward is None

    @pytest.mark.parametrize("path", NATIVE)
    def test_what_is_no_duration_is_refused(self, path: str):
        assert reason({"model": "m", "keep_alive": "for ever"}, path) is Reason.BAD_REQUEST


class TestUnload:
    @pytest.mark.parametrize("keep_alive", [0, 0.0, -0.0, "0", "0s", "0m", 1e-12, "1ns"])
    @pytest.mark.parametrize(
        ("path", "nothing"),
        [
            (GENERATE, {}),
            (GENERATE, {"prompt": ""}),
            (GENERATE, {"prompt": None}),
            (GENERATE, {"prompt": "", "messages": [{"role": "user"}]}),
            (CHAT, {}),
            (CHAT, {"messages": []}),
            (CHAT, {"messages": None}),
            (CHAT, {"messages": [], "prompt": "hello"}),
        ],
    )
    def test_nothing_to_do_and_no_time_to_stay(self, path: str, nothing: dict[str, Any], keep_alive: object):
        asked = judged({"model": "m", **nothing, "keep_alive": keep_alive}, path)
        assert (asked.cls, asked.model) == (RouteClass.MANAGEMENT, "m:latest")

    def test_white_space_in_an_empty_list(self):
        body = b'{"model":"m","messages":[ \n\t ],"keep_alive":0}'
        assert judged(body, CHAT).cls is RouteClass.MANAGEMENT

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            (GENERATE, {"prompt": "x", "keep_alive": 0}),
            (GENERATE, {"prompt": " ", "keep_alive": 0}),
            (GENERATE, {"keep_alive": 300}),
            (GENERATE, {"keep_alive": None}),
            (GENERATE, {}),
            (CHAT, {"messages": [{}], "keep_alive": 0}),
            (CHAT, {"messages": [None], "keep_alive": 0}),
            (CHAT, {"keep_alive": "5m"}),
            (EMBED, {"input": "", "keep_alive": 0}),
            (V1, {"messages": [], "keep_alive": 0}),
        ],
    )
    def test_everything_else_is_work(self, path: str, body: dict[str, Any]):
        assert judged({"model": "m", **body}, path).cls is RouteClass.WORK

    def test_for_ever_is_a_load_and_within_bounds(self):
        asked = judged(b'{"model":"m","keep_alive":-1}')
        assert (asked.cls, asked.forward) == (RouteClass.WORK, b'{"model":"m","keep_alive":1800}')


class TestRunner:
    @pytest.mark.parametrize(
        ("body", "asks"),
        [
            ({}, PLAIN),
            ({"options": None}, PLAIN),
            ({"options": {}}, PLAIN),
            ({"options": {"temperature": 0.5, "stop": ["x"], "num_predict": 5, "seed": 1}}, PLAIN),
            ({"options": {"num_ctx": 4096}}, RunnerAsk(False, 4096)),
            ({"options": {"num_ctx": 4096.0}}, RunnerAsk(False, 4096)),
            ({"options": {"num_ctx": 4096.9}}, RunnerAsk(False, 4096)),
            ({"options": {"num_ctx": None, "num_gpu": None}}, PLAIN),
            ({"options": {"num_ctx": "4096"}}, RunnerAsk(False, None, True)),
            ({"options": {"num_ctx": True}}, RunnerAsk(False, None, True)),
            ({"options": {"num_ctx": 1e300}}, RunnerAsk(False, None, True)),
            ({"options": {"num_ctx": 4096, "num_batch": 8}}, RunnerAsk(False, 4096, True)),
            ({"options": {"low_vram": False}}, RunnerAsk(False, None, True)),
            ({"options": {"an_option_of_the_next_release": 1}}, RunnerAsk(False, None, True)),
            ({"shift": False}, RunnerAsk(False, None, True)),
            ({"shift": None}, PLAIN),
        ],
    )
    @pytest.mark.parametrize("path", NATIVE)
    def test_what_makes_a_model_load_anew(self, path: str, body: dict[str, Any], asks: RunnerAsk):
        assert judged({"model": "m", "prompt": "x", **body}, path).runner == asks

    @pytest.mark.parametrize("option", ["num_batch", "use_mmap", "num_thread", "draft_num_predict"])
    def test_each_option_of_the_runner(self, option: str):
        assert judged({"options": {option: 1}}).runner == RunnerAsk(False, None, True)

    @pytest.mark.parametrize(
        ("options", "left"),
        [
            (b'{"num_gpu":0}', b"{}"),
            (b'{ "num_gpu" : 0 , "num_ctx" : 5 }', b'{ "num_ctx" : 5 }'),
            (b'{"num_ctx":5,"main_gpu":1}', b'{"num_ctx":5}'),
            (b'{"seed":1, "num_gpu":null, "num_ctx":5,"main_gpu":1}', b'{"seed":1, "num_ctx":5}'),
            (b'{"num_\\u0067pu":0,"num_ctx":5}', b'{"num_ctx":5}'),
        ],
    )
    @pytest.mark.parametrize("path", NATIVE)
    def test_where_a_model_goes_is_the_owners(self, path: str, options: bytes, left: bytes):
        asked = judged(b'{"model":"m","options":%b,"keep_alive":-1,"prompt":"x"}' % options, path)
        assert asked.forward == b'{"model":"m","options":%b,"keep_alive":1800,"prompt":"x"}' % left
        assert asked.runner == RunnerAsk(False, 5 if b"num_ctx" in left else None)
        asked = judged(b'{"keep_alive":"24h","model":"m", "options" : %b}' % options, path)
        assert asked.forward == b'{"keep_alive":1800,"model":"m", "options" : %b}' % left

    def test_under_v1_there_are_none(self):
        assert judged({"model": "m", "options": {"num_ctx": 1}, "shift": True}, V1).runner == RunnerAsk(True)

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            (b'{"num_ctx":1,"num_ctx":2}', Reason.AMBIGUOUS_BODY),
            (b'{"num_ctx":1,"NUM_CTX":2}', Reason.AMBIGUOUS_BODY),
            (b'{"Num_Ctx":2}', Reason.AMBIGUOUS_BODY),
            ('{"num_\u212atx":1,"num_ktx":2}'.encode(), Reason.AMBIGUOUS_BODY),
            (b"[]", Reason.BAD_REQUEST),
            (b'"x"', Reason.BAD_REQUEST),
            (b"5", Reason.BAD_REQUEST),
        ],
    )
    def test_options_are_one_plain_object(self, options: bytes, why: Reason):
        refused = judge(b'{"model":"m","options":%b}' % options)
        assert isinstance(refused, Refusal)
        assert refused.reason is why
        assert '"options"' in refused.message


def test_what_is_counted():
    assert judged({"model": "m", "prompt": "x", "options": {"num_predict": 7}}).max_tokens == 7
    assert judged({"model": "m", "max_tokens": 7, "n": 2}, V1) == Judged(
        "m:latest", max_tokens=7, n=2, runner=RunnerAsk(True)
    )
    assert [judged({"model": "m", "prompt": "x", **more}).stream for more in ({}, {"stream": False})] == [
        True,
        False,
    ]
    assert [judged({"stream": said}, V1).stream for said in (True, None)] == [True, False]


def test_background_work_is_refused():
    assert reason({"model": "m", "background": True}, "/v1/responses") is Reason.BACKGROUND_REFUSED


# Generated bodies: every spelling of every key, values of every kind, twice, nested, with something after it.

KEYS = ("model", "name", "prompt", "messages", "keep_alive", "options", "shift", "stream", "x")


def spelled(key: str) -> st.SearchStrategy[str]:
    odd = [
        key.upper(),
        key.title(),
        key.replace("k", "\u212a"),
        key.replace("s", "\u017f"),
        f"\\u{ord(key[0]):04x}{key[1:]}",
    ]
    return st.one_of(*[st.just(key)] * 9, st.sampled_from(odd))


VALUES = {
    "model": ['"small"', '"Small:latest"', '"huge"', '" small"', '"big:cloud"', '"big:x-CLOUD"', '"m:local"',
              "null", "5", '"\\u0073mall"', '""', '"https://registry.ollama.ai/library/small"'],
    "name": ['"huge"', '"big:cloud"', "null"],
    "prompt": ['""', '"x"', "null", "[]"],
    "messages": ["[]", "[ ]", "[{}]", "null", "{}"],
    "keep_alive": ["0", "-0.0", "-1", "300", "1e12", "1e-10", '"0s"', '"-1m"', '"0.1ns"', '"24h"', '"5m"',
                   '"1800s"', "null", "true", '"\\u0030"', "1e300", '"1h1h"', '"-0s"'],
    "shift": ["true", "false", "null"],
    "stream": ["true", "false", "null"],
    "x": ["1", '{"model":"huge"}', '"model"'],
}  # fmt: skip
OPTION_VALUES = ["1", "4096", "null", "true", "2.5"]


def joined(pairs: list[tuple[str, str]], gap: str) -> str:
    return (
        "{"
        + gap.join([""])
        + f",{gap}".join(f'"{key}"{gap}:{gap}{value}' for key, value in pairs)
        + gap
        + "}"
    )


OPTIONS = st.one_of(
    st.sampled_from(["null", "[]", "{}"]),
    st.builds(
        joined,
        st.lists(
            st.tuples(
                st.sampled_from(["num_ctx", "num_thread", "temperature"]).flatmap(spelled),
                st.sampled_from(OPTION_VALUES),
            ),
            max_size=3,
        ),
        st.sampled_from(["", " "]),
    ),
)


def pair_of(key: str) -> st.SearchStrategy[tuple[str, str]]:
    return st.tuples(spelled(key), OPTIONS if key == "options" else st.sampled_from(VALUES[key]))


BODIES = st.builds(
    lambda pairs, gap, after: (joined(pairs, gap) + after).encode(),
    st.one_of(
        st.lists(st.sampled_from(KEYS).flatmap(pair_of), max_size=5),
        # Mostly without a repetition, so that most of these are not refused.
        st.lists(st.sampled_from(KEYS), unique=True, max_size=6).flatmap(
            lambda keys: st.tuples(
                *[st.tuples(st.just(key), pair_of(key).map(lambda pair: pair[1])) for key in keys]
            )
        ),
    ),
    st.sampled_from(["", " ", "\n\t"]),
    st.sampled_from(["", "", "", " ", "x", '{"model":"huge"}']),
)


@settings(max_examples=300, deadline=None)
@given(BODIES, st.sampled_from([*NATIVE, V1, SHOW]))
def test_what_is_judged_is_what_a_reader_like_gos_takes(body: bytes, path: str):
    asked = judge(body, path)
    if isinstance(asked, Refusal):
        return
    forwarded = body if asked.forward is None else asked.forward
    try:
        taken = go_reader.read(forwarded)
    except go_reader.GoRefusesError:
        return
    name = taken.model or (taken.name if path == SHOW else "")
    assert not go_reader.leaves_the_machine(name)
    assert (asked.model or "") == (canonical_model("ollama", name) if name else "")
    if path not in NATIVE:
        assert asked.forward is None
        return
    assert taken.keep_alive is None or 0 <= taken.keep_alive <= MAX_KEEP_ALIVE * 10**9
    if go_reader.unloads(path, taken):
        assert asked.cls is RouteClass.MANAGEMENT
    assert_runner(asked.runner, taken)
    assert_only_keep_alive_changed(body, forwarded)


def assert_runner(asked: RunnerAsk | None, taken: go_reader.Read) -> None:
    assert asked is not None
    assert not asked.v1
    options = {key: value for key, value in taken.options.items() if value is not None}
    other = taken.shift is not None or any(key in options for key in go_reader.RUNNER if key != "num_ctx")
    assert asked.other_options or not other
    context = options.get("num_ctx")
    if isinstance(context, bool):
        assert asked.other_options
    else:
        assert asked.num_ctx == (None if context is None else math.trunc(context))


def assert_only_keep_alive_changed(body: bytes, forwarded: bytes) -> None:
    before, after = json.loads(body), json.loads(forwarded)
    assert before.keys() == after.keys()
    assert {key: value for key, value in before.items() if value != after[key]}.keys() <= {"keep_alive"}
