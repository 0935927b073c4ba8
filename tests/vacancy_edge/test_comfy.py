from __future__ import annotations

import json
import time
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from standins.comfyui_recorded import NEW, recorded
from vacancy_api.reasons import Reason
from vacancy_dialects import PromptAsk, table_for
from vacancy_edge import Judged, Refusal, judge_body, retyped
from vacancy_edge.bodies import edited
from vacancy_edge.comfy import CLOSELY, MAX_INPUTS, MAX_MODELS, judge_graph

ID = "e186e2ca-b3f5-4bda-be65-4619f2694c33"
MATCH = table_for("comfyui").classify("POST", b"/prompt", None)
assert MATCH.route is not None
ROUTE = MATCH.route


def node(**inputs: Any) -> dict[str, Any]:
    return {"class_type": "X", "inputs": inputs}


def body(graph: Any = None, **more: Any) -> bytes:
    return json.dumps({"prompt": {"1": node()} if graph is None else graph} | more).encode()


def ask(raw: bytes) -> PromptAsk:
    found = judge_graph(ROUTE, raw, False)
    assert not isinstance(found, Refusal), found
    assert found[0].prompt is not None
    return found[0].prompt


def models(*nodes: dict[str, Any]) -> tuple[str | None, ...]:
    return ask(body({str(at): one for at, one in enumerate(nodes)})).models


def reason(raw: bytes) -> Reason:
    found = judge_graph(ROUTE, raw, False)
    assert isinstance(found, Refusal), found
    return found.reason


def test_a_recorded_submission() -> None:
    sent = recorded(NEW, "prompt_ok_client_prompt_id")["request"]["body"]
    found = ask(json.dumps(sent).encode())
    assert found == PromptAsk(sent["prompt_id"], "capclient", (), own=True, from_end=38)


@pytest.mark.parametrize("key", ["ckpt_name", "unet_name", "model_name", "model_path", "diffusion_model"])
def test_what_a_loader_names(key: str) -> None:
    assert models(node(**{key: "a"}), node(seed=3, **{key: "sub/b.gguf"}), node(**{key: "a"})) == (
        "a",
        "sub/b.gguf",
    )


def test_a_loader_of_a_custom_node_is_known_by_the_file_it_names() -> None:
    assert models(node(model="Wan.SafeTensors"), node(value={"a": ["b", {"c": "x.ckpt"}]})) == (
        "Wan.SafeTensors",
        "x.ckpt",
    )
    assert models(node(text="a cat", steps=20, image=["1", 0])) == ()


def test_companions_come_with_a_model() -> None:
    companions = {
        **dict.fromkeys(("vae_name", "lora_name", "clip_name1", "control_net_name"), "c.safetensors"),
        "lora_1": {"on": True, "lora": "l.safetensors"},
        "stack": [{"lora": "m.safetensors", "strength": 1}],
    }
    assert models(node(**companions), node(ckpt_name="main.safetensors")) == ("main.safetensors",)


def test_in_large_values_every_name_counts_and_none_can_hide() -> None:
    filler = ["x" * 100] * (CLOSELY // 100)
    assert models(node(stack=[*filler, {"lora": "l.safetensors"}, "m.ckpt"])) == ("l.safetensors", "m.ckpt")
    assert models(node(stack=filler)) == ()
    raw = body({"1": node(stack=[*filler, "big.ckpt"])}).replace(b"big.ckpt", b"big\\u002eckpt")
    assert ask(raw).models == (None,)
    assert (
        reason(body({"1": node(stack=[*filler, *(f"m{n}.bin" for n in range(100))])})) is Reason.BAD_REQUEST
    )


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(["a.bin"] * 400_000, id="names"),
        pytest.param([["a"]] * 500_000, id="lists"),
        pytest.param("A" * (3 << 20), id="a picture"),
        pytest.param("\n" * (1 << 20), id="escapes"),
        pytest.param({f"k{n}": "v.bin" for n in range(200_000)}, id="keys"),
        pytest.param("." * (4_000_000), id="dots"),
        pytest.param(["." * 4_000_000, "a.bin"], id="dots in a list"),
        pytest.param({"v" * 4_000_000: "a.bin"}, id="a long key"),
    ],
)
def test_no_graph_holds_up_the_loop(value: Any) -> None:
    """Within the body that is judged on the loop; a whole second would be some 20 times what it takes."""
    assert seconds_for(body({"1": node(x=value)})) < 1.0


def test_nor_do_many_nodes() -> None:
    assert seconds_for(body({"1": node(**{"v" * 4_000_000: "a.bin"})})) < 1.0
    assert seconds_for(b'{"prompt":{%b}}' % b",".join(b'"%d":{}' % n for n in range(350_000))) < 1.0


def seconds_for(raw: bytes) -> float:
    assert 1 << 20 < len(raw) <= 4 << 20
    began = time.process_time()
    judge_graph(ROUTE, raw, False)
    return time.process_time() - began


def test_a_name_that_another_node_computes_is_not_known() -> None:
    assert models(node(ckpt_name=["4", 0]), node(ckpt_name=7)) == (None,)


def test_a_key_or_a_name_that_is_written_with_escapes_is_read_all_the_same() -> None:
    raw = b'{"prompt": {"1": {"\\u0069nputs": {"ckpt\\u005fname": "\\u0062ig.ckpt", "x": "y\\u002ept"}}}}'
    assert ask(raw).models == ("big.ckpt", "y.pt")


def test_of_two_equal_keys_in_a_graph_the_last_counts_like_for_the_server() -> None:
    raw = b'{"prompt": {"1": {"inputs": {"ckpt_name": "small", "ckpt_name": "huge"}}}}'
    assert ask(raw).models == ("huge",)
    raw = b'{"prompt": {"1": {"inputs": {"ckpt_name": "small"}}, "1": {"inputs": {"ckpt_name": "huge"}}}}'
    assert ask(raw).models == ("huge",)
    raw = b'{"prompt": {"1": {"inputs": {"ckpt_name": "small"}, "inputs": {"ckpt_name": "huge"}}}}'
    assert ask(raw).models == ("huge",)


@given(st.recursive(st.none() | st.integers(0, 9) | st.text(max_size=8), lambda x: st.lists(x, max_size=3)))
def test_a_graph_is_read_like_python_reads_it(value: Any) -> None:
    raw = body({"1": node(ckpt_name="a.ckpt", value=value), "2": node()})
    assert ask(raw).models[0] == "a.ckpt"


@pytest.mark.parametrize(
    ("given_id", "kept"),
    [
        (ID, ID),
        (ID.upper(), None),
        ("not-a-uuid", None),
        (f"{{{ID}}}", None),
        (ID.replace("-", ""), None),
        (ID + "\n", None),
        (None, None),
        (7, None),
        ("", None),
    ],
)
def test_only_a_canonical_id_is_kept(given_id: object, kept: str | None) -> None:
    found = ask(body(prompt_id=given_id))
    assert found.own == (kept is not None)
    assert str(UUID(found.prompt_id)) == found.prompt_id == (kept or found.prompt_id)


def test_a_submission_without_an_id_is_given_one_that_nobody_has() -> None:
    assert ask(body()).prompt_id != ask(body()).prompt_id


def test_a_client_id_counts_where_the_server_looks_for_it() -> None:
    assert ask(body(client_id="c")).client_id == "c"
    assert ask(body(extra_data={"client_id": "e"})).client_id == "e"
    assert ask(body(client_id="c", extra_data={"client_id": "e"})).client_id == "c"
    assert ask(body(client_id=None, extra_data={"client_id": "e"})).client_id is None  # null takes its place
    assert ask(body(client_id="")).client_id is None
    assert ask(body(extra_data={})).client_id is None


@pytest.mark.parametrize(
    "more",
    [{"client_id": 7}, {"client_id": "x" * 300}, {"extra_data": []}, {"extra_data": {"client_id": ["x"]}}],
)
def test_a_client_id_that_is_none_is_refused(more: dict[str, Any]) -> None:
    assert reason(body(**more)) is Reason.BAD_REQUEST


@pytest.mark.parametrize("graph", [[], "x", 3, {"1": []}, {"1": {"inputs": []}}, {"1": None}])
def test_a_prompt_that_is_no_graph_is_refused(graph: Any) -> None:
    assert reason(body(graph)) is Reason.BAD_REQUEST


def test_a_body_without_a_graph_is_refused() -> None:
    assert reason(b"{}") is Reason.BAD_REQUEST
    assert reason(b"{nope") is Reason.BAD_REQUEST  # the server answers 500


@pytest.mark.parametrize(
    "raw",
    [
        b'{"prompt": {}, "prompt": {"1": {}}}',
        b'{"prompt": {}, "Prompt": {}}',
        b'{"prompt": {}, "NUMBER": -1}',
        b'{"prompt": {}} x',
    ],
)
def test_a_body_that_reads_in_two_ways_is_refused(raw: bytes) -> None:
    assert reason(raw) is Reason.AMBIGUOUS_BODY


def test_bounds() -> None:
    assert reason(body({str(at): {} for at in range(MAX_INPUTS + 1)})) is Reason.BAD_REQUEST
    wide = node(**{f"x{at}": 0 for at in range(MAX_INPUTS)})
    assert reason(body({"1": wide})) is Reason.BAD_REQUEST
    assert models(node(**{f"x{at}": 0 for at in range(MAX_INPUTS - 1)})) == ()
    many = {str(at): node(ckpt_name=f"m{at}") for at in range(MAX_MODELS + 1)}
    assert reason(body(many)) is Reason.BAD_REQUEST
    assert reason(body({"1": node(ckpt_name="x" * 2000)})) is Reason.BAD_REQUEST
    deep = b'{"prompt": {"1": {"inputs": {"x": ' + b"[" * 100 + b'"a.bin"' + b"]" * 100 + b"}}}}"
    assert reason(deep) is Reason.BAD_REQUEST


@pytest.mark.parametrize("after", [b"", b" \n\t"])
@pytest.mark.parametrize(
    "more", [{}, {"prompt_id": "mine"}, {"prompt_id": ID}, {"number": -1e9, "front": True}]
)
@pytest.mark.parametrize("first", [False, True])
def test_what_jumps_the_queue_goes_and_the_id_stands_where_it_can_be_exchanged(
    first: bool, more: dict[str, Any], after: bytes
) -> None:
    graph = {"prompt": {"1": node()}}
    raw = json.dumps(more | graph if first else graph | more).encode() + after
    found = judge_graph(ROUTE, raw, False)
    assert not isinstance(found, Refusal)
    forward, prompt = edited(raw, found[1]), found[0].prompt
    assert prompt is not None
    assert json.loads(forward) == {**graph, "prompt_id": prompt.prompt_id}
    at = len(forward) - prompt.from_end
    assert forward[at : at + 36].decode() == prompt.prompt_id


def test_a_submission_is_judged_as_a_graph() -> None:
    raw = body({"1": node(ckpt_name=["2", 0]), "2": node(value="b.ckpt")}, number=3)
    judged = judge_body(MATCH, raw, b"application/json", None, None)
    assert isinstance(judged, Judged)
    assert judged.model == "b.ckpt"
    assert judged.prompt is not None
    assert judged.prompt.models == (None, "b.ckpt")
    assert judged.forward is not None
    assert b"number" not in judged.forward
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(judged), type=Judged)
    assert again == judged  # as the helper process passes it


def test_the_type_of_a_graph_is_json() -> None:
    assert isinstance(judge_body(MATCH, body(), None, None, None), Judged)
    refused = judge_body(MATCH, body(), b"application/json; charset=utf-16", None, None)
    assert isinstance(refused, Refusal)
    assert retyped(MATCH, b"text/plain")


def test_a_job_that_outlives_its_reply_is_refused_by_its_head() -> None:
    long = table_for("chatterbox").classify("POST", b"/audio/speech/long", None)
    refused = judge_body(long, b"{}", b"application/json", None, None)
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.BACKGROUND_REFUSED
