"""The chunked decoder reads as h11 does, or refuses."""

from __future__ import annotations

from itertools import pairwise

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vacancy_http.chunked import ChunkedDecoder, one_chunk
from vacancy_http.faults import MalformedError

payloads = st.lists(st.binary(min_size=1, max_size=40), max_size=5)
cuts = st.lists(st.integers(0, 300), max_size=6)


def encode(pieces: list[bytes], after: bytes = b"") -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n" + after


def decode(raw: bytes, positions: list[int]) -> tuple[bytes, ChunkedDecoder]:
    decoder = ChunkedDecoder()
    out = b""
    edges = sorted({0, len(raw), *(p for p in positions if p < len(raw))})
    held = b""
    for start, end in pairwise(edges):
        if decoder.done:
            held += raw[start:end]
        else:
            out += decoder.feed(raw[start:end])
    decoder.rest += held
    return out, decoder


@given(payloads, cuts, st.binary(max_size=20))
@settings(max_examples=200)
def test_what_was_encoded_comes_back_however_it_is_cut(
    pieces: list[bytes], at: list[int], after: bytes
) -> None:
    out, decoder = decode(encode(pieces, after), at)
    assert out == b"".join(pieces)
    assert decoder.done
    assert decoder.rest == after


@given(payloads, cuts, st.data())
@settings(max_examples=300)
def test_what_is_accepted_h11_reads_the_same(pieces: list[bytes], at: list[int], data: st.DataObject) -> None:
    raw = bytearray(encode(pieces))
    position = data.draw(st.integers(0, len(raw) - 1))
    raw[position : position + data.draw(st.integers(0, 2))] = data.draw(
        st.sampled_from([b"", b"\r", b"\n", b"0", b";", b" ", b"\r\n", b"x", b"\0", b"g: h\r\n"]),
    )
    try:
        out, decoder = decode(bytes(raw), at)
    except MalformedError:
        return
    if decoder.done:
        server = h11.Connection(h11.SERVER)
        server.receive_data(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n" + bytes(raw))
        server.next_event()
        body = b""
        while isinstance(event := server.next_event(), h11.Data):
            body += bytes(event.data)
        assert isinstance(event, h11.EndOfMessage)
        assert body == out
        assert server.trailing_data[0] == decoder.rest


@pytest.mark.parametrize(
    "raw",
    [
        b"\r\n",
        b"g\r\n",
        b"-1\r\n",
        b"+1\r\n",
        b"0x1\r\n",
        b"1 \r\n",
        b" 1\r\n",
        b"1_0\r\n",
        b"11111111111111111\r\n",
        b"1\n",
        b"1\r1",
        b"1;a\nb\r\n",
        b"1;\0\r\n",
        b"1\r\nab",
        b"1\r\na\n",
        b"1\r\na\rb",
        b"0\r\nno trailer\r\n",
        b"0\r\n folded: x\r\n",
        b"0\r\na : b\r\n",
        b"1;" + b"x" * 5000,
        b"0\r\n" + b"a: b\r\n" * 20_000,
    ],
)
def test_what_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedError):
        ChunkedDecoder().feed(raw)


def test_trailers_and_extensions_leave_no_trace() -> None:
    out, decoder = decode(b"2;a=b;c\r\nhi\r\n0;last\r\nX: y\r\nZ: w\r\n\r\nrest", [])
    assert out == b"hi"
    assert decoder.rest == b"rest"


def test_a_large_chunk_is_given_out_as_it_comes() -> None:
    decoder = ChunkedDecoder()
    assert decoder.feed(b"100000\r\n" + b"x" * 1000) == b"x" * 1000
    assert decoder.feed(b"y" * 1000) == b"y" * 1000


def test_a_few_small_chunks_are_allowed_and_large_ones_pay_for_more() -> None:
    small, large = b"1\r\nx\r\n", b"400\r\n" + b"y" * 1024 + b"\r\n"
    assert len(ChunkedDecoder(100).feed(small * 100 + b"0\r\n\r\n")) == 100
    assert len(ChunkedDecoder(100).feed((small * 10 + large) * 1000)) == 10 * 1000 + 1024 * 1000
    with pytest.raises(MalformedError):
        ChunkedDecoder(100).feed(small * 200)


def test_an_upstream_may_send_chunks_of_any_size() -> None:
    assert len(ChunkedDecoder().feed(b"1\r\nx\r\n" * 50_000)) == 50_000


@given(
    st.one_of(
        st.binary(max_size=40).map(lambda data: b"%x\r\n%b\r\n" % (len(data), data)),
        st.binary(max_size=40).map(lambda data: b"%X\r\n%b\r\n" % (len(data), data)),
        st.binary(max_size=40).map(lambda data: b"%x;a=b\r\n%b\r\n" % (len(data), data)),
        st.binary(max_size=40).map(lambda data: b"0%x\r\n%b\r\n" % (len(data), data)),
        st.tuples(st.integers(0, 20), st.binary(max_size=20)).map(lambda t: b"%x\r\n%b\r\n" % t),
        st.lists(st.sampled_from([b"1", b"a", b"\r", b"\n", b"\r\n", b"0", b"-", b" "]), max_size=8).map(
            b"".join
        ),
    )
)
def test_one_chunk_is_what_the_decoder_makes_of_it(data: bytes) -> None:
    payload = one_chunk(data)
    if payload is not None:
        decoder = ChunkedDecoder()
        assert decoder.feed(data) == payload != b""
        assert decoder.between


@pytest.mark.parametrize("size", [1, 15, 16, 255, 4096, 70000])
def test_one_chunk_as_everybody_writes_it_is_known(size: int) -> None:
    chunk = encode([b"x" * size])[: -len(b"0\r\n\r\n")]
    assert one_chunk(chunk) == b"x" * size
    for other in (chunk[:-1], chunk + b"0", b"0" + chunk, chunk + chunk, b"0\r\n\r\n", b"\r\n\r\n"):
        assert one_chunk(other) is None


def test_what_is_fed_next_starts_a_chunk_or_does_not() -> None:
    decoder = ChunkedDecoder()
    found = [decoder.between]
    for piece in (b"2\r\nab\r\n", b"2\r", b"\na", b"b", b"\r", b"\n", b"0\r\n", b"\r\n"):
        decoder.feed(piece)
        found.append(decoder.between)
    assert found == [True, True, False, False, False, False, True, False, False]
