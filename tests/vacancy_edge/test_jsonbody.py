from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vacancy_api.reasons import Reason
from vacancy_edge import jsonbody
from vacancy_edge.jsonbody import MAX_KEYS, MAX_NAMES, cut_spans, fold, read_object, walk
from vacancy_edge.refusal import Refusal

AMBIGUOUS, BAD = Reason.AMBIGUOUS_BODY, Reason.BAD_REQUEST
WATCHED = {"model", "stream"}


def keys(body: bytes | memoryview) -> list[str] | Reason:
    top = read_object(body, WATCHED)
    return top.reason if isinstance(top, Refusal) else list(top)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{}", []),
        (b' { "a" : 1 , "b" : [ 1 , 2 ] }\r\n', ["a", "b"]),
        (b'{"a":1,"b":2}', ["a", "b"]),
        (b'{"a": 1, "b": 2}', ["a", "b"]),
        (b'{"\\u0061":1,"b":2}', ["a", "b"]),
        ('{"é":1,"model":"ü"}'.encode(), ["é", "model"]),
        (b'{"Temperature":1,"model":"a"}', ["Temperature", "model"]),
        (b'{"a":{"model":1,"MODEL":2},"model":"x"}', ["a", "model"]),
        (b'{"a":"\\"model\\":","model":"x"}', ["a", "model"]),
        (b'{"a":1,"a":2}', AMBIGUOUS),
        (b'{"a":1,"a":1}', AMBIGUOUS),
        (b'{"a": 1, "a": 1}', AMBIGUOUS),
        (b'{"a":1,"\\u0061":1}', AMBIGUOUS),
        (b'{"a":1, "A":1}', AMBIGUOUS),
        (b'{"model":"a","MODEL":"b"}', AMBIGUOUS),
        (b'{"MODEL":"b"}', AMBIGUOUS),
        ('{"\u017ftream":true}'.encode(), AMBIGUOUS),
        ('{"\u212a":1,"k":1}'.encode(), AMBIGUOUS),
        ('{"ma\u017f\u017fe":1,"masse":1}'.encode(), AMBIGUOUS),
        ('{"\u0131":1,"i":1}'.encode(), AMBIGUOUS),
        (b'{"a":1}x', AMBIGUOUS),
        (b'{"a":1}{"a":2}', AMBIGUOUS),
        (b'{"a":1}\x00', AMBIGUOUS),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", AMBIGUOUS),
        (b'{"a":' + b'{"b":' * 100_000, AMBIGUOUS),
        (b"", BAD),
        (b"[]", BAD),
        (b'"model"', BAD),
        (b"null", BAD),
        (b"\xef\xbb\xbf{}", BAD),
        ('{"a":1}'.encode("utf-16"), BAD),
        (b'{"a":NaN}', BAD),
        (b'{"a":Infinity}', BAD),
        (b'{"a":01}', BAD),
        (b'{"a":1,}', BAD),
        (b"{'a':1}", BAD),
        (b'{"a":"\xff"}', BAD),
        (b'{"a":"\xed\xa0\x80"}', BAD),
        (b'{"\xff":1}', BAD),
        (b'{"a":"\\ud800"}', BAD),
        (b'{"a":"\x01"}', BAD),
        (b'{"a":1//x\n}', BAD),
        (b"{" + b",".join(b'"k%d":1' % n for n in range(MAX_KEYS + 1)) + b"}", BAD),
        (b'{"%b":1}' % (b"k" * (MAX_NAMES + 1)), BAD),
        (b'{"%b":1}' % (b"\\u0061" * (MAX_NAMES + 1)), BAD),
        (
            b"{" + b",".join(b'"k%d":1' % n for n in range(MAX_KEYS)) + b"}",
            [f"k{n}" for n in range(MAX_KEYS)],
        ),
    ],
)
def test_read_alike_by_everyone_or_refused(body: bytes, expected: list[str] | Reason):
    assert keys(body) == expected
    assert keys(memoryview(body)) == expected


def test_a_value_made_to_look_like_more_pairs_does_not_lead_the_walk_astray():
    # The first value holds what would follow if it had the length of the last one.
    assert keys(b'{"model" :"a\\",\\"x\\" :1,", "x" :5, "model" :"a\\"," }') == AMBIGUOUS
    assert keys(b'{"model" :[100,"x"],"model":"ab"}') == AMBIGUOUS
    assert keys(b'{"model" :{"a":{ },"x":1},"y":2,"model":{"b":"d"}}') == AMBIGUOUS
    assert keys(b'{"model" :{"a":{}}, "model":{"b":1}}') == AMBIGUOUS


def test_values_above_a_piece_are_compared_whole():
    long = b'"' + b"x" * (3 << 20)
    assert keys(b'{ "a":' + long + b'y", "b":1}') == ["a", "b"]
    assert keys(b'{ "a":' + long + b'y", "a":' + long + b'z"}') == AMBIGUOUS


@pytest.mark.parametrize(
    ("body", "gone", "left"),
    [
        (b'{"p":1}', ["p"], b"{}"),
        (b'{"p":1,"a":2}', ["p"], b'{"a":2}'),
        (b'{"a":2,"p":1}', ["p"], b'{"a":2}'),
        (b'{"a":2,"p":1,"b":3}', ["p"], b'{"a":2,"b":3}'),
        (b' { "a" : 2 , "p" : 1 } ', ["p"], b' { "a" : 2 } '),
        (b'{"p":1,"q":2,"a":3}', ["p", "q"], b'{"a":3}'),
        (b'{"p":1,"a":3,"q":2}', ["p", "q"], b'{"a":3}'),
        (b'{"a":3,"p":1,"q":2}', ["p", "q"], b'{"a":3}'),
        (b'{"p":1,"q":2}', ["p", "q"], b"{}"),
        (b'{"\\u0070":1,"a":2}', ["p"], b'{"a":2}'),
    ],
)
def test_cutting_leaves_the_rest_byte_for_byte(body: bytes, gone: list[str], left: bytes):
    top = read_object(body, WATCHED)
    assert not isinstance(top, Refusal)
    spans = walk(top, body)
    assert spans is not None
    cut, at = b"", 0
    for start, end in cut_spans(spans, gone):
        cut, at = cut + body[at:start], end
    assert cut + body[at:] == left


# Bodies as text, so that equal keys, escapes and white space are all there.

SPELLINGS = st.sampled_from(
    [
        "model",
        "MODEL",
        "Model",
        "mod\\u0065l",
        "\\u006Dodel",
        "mo\\u0064El",
        "stream",
        "\u017ftream",
        "\\u017ftream",
        "STREAM",
        "prompt",
        "k",
        "K",
        "\u212a",
        "messages",
        "a\\/b",
        "a/b",
        "",
    ]
)
SPACES = st.sampled_from(["", "", "", " ", "\n\t"])
VALUES = st.sampled_from(
    [
        '"small"',
        '"huge"',
        "1",
        "-0.5e3",
        "true",
        "null",
        '{"model":"huge","MODEL":"x"}',
        '[{"role":"user","content":"\\"model\\":\\"huge\\""}]',
        '"\\",\\"model\\":\\"huge"',
        '"é"',
        "[" * 30 + "]" * 30,
    ]
)
PAIRS = st.tuples(SPACES, SPELLINGS, SPACES, SPACES, VALUES, SPACES)


def text_of(pairs: list[tuple[str, ...]]) -> str:
    return "{" + ",".join(f'{a}"{key}"{b}:{c}{value}{d}' for a, key, b, c, value, d in pairs) + "}"


def readers(text: str, name: str) -> list[object]:
    """What readers take for `name`: case-sensitive or not, keeping the first of equal keys or the last."""
    pairs: list[tuple[str, object]] = json.loads(text, object_pairs_hook=list)
    exact = [value for key, value in pairs if key == name]
    folded = [value for key, value in pairs if key.casefold() == name.casefold()]
    upper = [value for key, value in pairs if key.upper() == name.upper()]
    return [found[at] if found else None for found in (exact, folded, upper) for at in (0, -1)]


@settings(max_examples=500, deadline=None)
@given(st.lists(PAIRS, max_size=6))
def test_what_is_read_is_what_every_reader_reads(pairs: list[tuple[str, ...]]):
    text = text_of(pairs)
    top = read_object(text.encode(), WATCHED)
    if isinstance(top, Refusal):
        return
    for name in WATCHED:
        taken = json.loads(bytes(top[name]), object_pairs_hook=list) if name in top else None
        assert all(read == taken for read in readers(text, name)), text


@settings(max_examples=300, deadline=None)
@given(st.lists(PAIRS, max_size=6))
def test_a_body_is_refused_only_for_keys_that_fold_together_or_are_misspelt(pairs: list[tuple[str, ...]]):
    names = [json.loads(f'"{pair[1]}"') for pair in pairs]
    folded = [fold(name) for name in names]
    misspelt = [name for name in names if fold(name) in WATCHED and name not in WATCHED]
    refused = isinstance(read_object(text_of(pairs).encode(), WATCHED), Refusal)
    assert refused == (len(set(folded)) < len(folded) or bool(misspelt))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 60))
def test_any_bytes_get_an_answer(junk: bytes, at: int):
    body = b'{"model":"a","prompt":"b","x":[1,2]}'
    top = read_object(body[:at] + junk + body[at:], WATCHED)
    assert isinstance(top, (dict, Refusal))


SEVERAL = st.lists(
    st.tuples(st.sampled_from(["a", "b", "model"]), st.sampled_from(["1", '"a"', "[1, 2]", '""']))
)
WRITTEN = st.sampled_from(["{%s}", " {%s}", "{%s }"])
BETWEEN = st.sampled_from([",", ", ", " ,"])
COLON = st.sampled_from([":", ": ", " :"])


@given(st.lists(st.tuples(SEVERAL, WRITTEN, BETWEEN, COLON), max_size=4))
def test_a_remembered_list_of_keys_changes_no_answer(
    bodies: list[tuple[list[tuple[str, str]], str, str, str]],
):
    raws = [
        (around % comma.join(f'"{key}"{colon}{value}' for key, value in pairs)).encode()
        for pairs, around, comma, colon in bodies
    ]
    fresh = []
    for raw in raws:
        jsonbody.plain_lists.clear()
        fresh.append(keys(raw))
    assert [keys(raw) for raw in raws * 2] == fresh * 2


def test_remembered_lists_are_bounded_and_short():
    jsonbody.plain_lists.clear()
    for number in range(1000):
        keys(b'{"a%d":1}' % number)
    keys(b'{"%b":1}' % (b"a" * 600))
    keys(b'{"%s":1}')
    assert 0 < len(jsonbody.plain_lists) <= 128
    assert all(len("".join(names)) < 512 and "%" not in "".join(names) for names in jsonbody.plain_lists)
