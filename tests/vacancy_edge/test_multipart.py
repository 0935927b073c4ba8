from __future__ import annotations

import re
from email.parser import BytesParser
from email.policy import HTTP

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vacancy_api.reasons import Reason
from vacancy_edge.multipart import MAX_PARTS, MAX_VALUE, boundary_of, read_form
from vacancy_edge.refusal import Refusal

AMBIGUOUS, BAD = Reason.AMBIGUOUS_BODY, Reason.BAD_REQUEST
WATCHED = {"model", "stream"}


def part(disposition: bytes, value: bytes = b"v", *more: bytes) -> bytes:
    head = b"\r\n".join([b"Content-Disposition: " + disposition, *more])
    return b"--x\r\n" + head + b"\r\n\r\n" + value + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--x--\r\n"


def field(name: bytes, value: bytes = b"v") -> bytes:
    return part(b'form-data; name="%b"' % name, value)


FILE = part(b'form-data; name="file"; filename="a.wav"', b"RIFF\r\n\r\n\x00--", b"Content-Type: audio/wav")


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        (b"multipart/form-data; boundary=x", b"x"),
        (b"Multipart/Form-Data;Boundary=x", b"x"),
        (b'multipart/form-data; boundary="a=b?"', b"a=b?"),
        (b"multipart/form-data; boundary=----WebKitFormBoundary7MA4", b"----WebKitFormBoundary7MA4"),
        (b"multipart/form-data; boundary=" + b"x" * 71, None),
        (b"multipart/form-data; boundary=x; boundary=y", None),
        (b"multipart/form-data; charset=utf-8; boundary=x", None),
        (b"multipart/form-data; boundary=", None),
        (b'multipart/form-data; boundary=""', None),
        (b'multipart/form-data; boundary="a b"', None),
        (b"multipart/form-data; boundary*=utf-8''x", None),
        (b"multipart/mixed; boundary=x", None),
        (b"multipart/form-data", None),
        (b"application/json", None),
        (None, None),
    ],
)
def test_boundaries(content_type: bytes | None, boundary: bytes | None):
    assert boundary_of(content_type) == boundary


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (form(field(b"model", b"a"), FILE), {"model": "a"}),
        (form(FILE, field(b"model", "é".encode())), {"model": "é"}),
        (form(field(b"model", b"a"))[:-2], {"model": "a"}),
        (form(part(b"form-data; name=model", b"a")), {"model": "a"}),
        (form(part(b'Form-Data ; Name="model"', b"a")), {"model": "a"}),
        (form(part(b'form-data; name="model"', b"a", b"Content-Type: text/plain")), {"model": "a"}),
        (form(part(b'form-data; name="model"', b"a", b"Content-Transfer-Encoding: 8bit")), {"model": "a"}),
        (
            form(part(b'form-data; name="model"', b"a", b"Content-Type: text/plain; Charset=UTF-8")),
            {"model": "a"},
        ),
        (
            form(part(b'form-data; name="model"', b"a", b'Content-Type: t/p;charset="us-ascii"; x=y')),
            {"model": "a"},
        ),
        (
            form(part(b'form-data; name="f"; filename="x"', b"a", b"Content-Type: text/csv; charset=latin1")),
            {},
        ),
        (form(part(b'form-data; name="model"', b"a", b"Content-Type: text/plain; charset=utf-16")), BAD),
        (form(part(b'form-data; name="model"', b"a", b"Content-Type: t/p; charset=utf-8; CHARSET = x")), BAD),
        (form(part(b'form-data; name="model"', b"a", b"Content-Type: t/p; charset*=utf-8''utf-16")), BAD),
        (form(part(b'form-data; name="model"', b"a", b"Content-Type: t/p", b"content-type: t/q")), BAD),
        (form(field(b"_charset_", b"utf-16"), field(b"model", b"a")), AMBIGUOUS),
        (form(field(b"_Charset_", b"utf-16"), field(b"model", b"a")), AMBIGUOUS),
        (form(field(b"model", b"")), {"model": ""}),
        (form(field(b"t[]"), field(b"t[]")), {}),
        (form(part(b'form-data; name="file"; filename="x"; filename*=utf-8\'\'x')), {}),
        (form(field(b"model"), field(b"model")), AMBIGUOUS),
        (form(field(b"model"), field(b"MODEL")), AMBIGUOUS),
        (form(field(b"Model")), AMBIGUOUS),
        (form(field(b" model")), AMBIGUOUS),
        (form(field(b"model[]")), AMBIGUOUS),
        (form(field("\u017ftream".encode())), AMBIGUOUS),
        (form(field(b"model", b" a")), AMBIGUOUS),
        (form(field(b"model", b"a\r\nb")), AMBIGUOUS),
        (form(field(b"model", b"\xff")), AMBIGUOUS),
        (form(field(b"model", b"m" * (MAX_VALUE + 1))), AMBIGUOUS),
        (form(part(b'form-data; name="model"; filename="a"')), AMBIGUOUS),
        (b"preamble\r\n" + form(field(b"model")), AMBIGUOUS),
        (form(field(b"model")) + b"epilogue", AMBIGUOUS),
        (form(field(b"model")) + b"\r\n", AMBIGUOUS),
        (form(field(b"model")) + form(field(b"model")), AMBIGUOUS),
        (field(b"model"), AMBIGUOUS),
        (b"--x--\r\n", AMBIGUOUS),
        (b"", AMBIGUOUS),
        (form(field(b"a", b'\n--x\nContent-Disposition: form-data; name="model"\n\nhuge')), AMBIGUOUS),
        (form(field(b"a", b"--x")), BAD),
        (form(field(b"a", b"\r\n--xyz")), AMBIGUOUS),
        (form(field(b"a")).replace(b"--x\r\n", b"--x \r\n"), AMBIGUOUS),
        (form(field(b"a")).replace(b"\r\n", b"\n"), AMBIGUOUS),
        (form(part(b"form-data; name*=utf-8''model")), BAD),
        (form(part(b'form-data; name="a"; name="model"')), BAD),
        (form(part(b'form-data; name="a"; NAME="model"')), BAD),
        (form(part(b'form-data; name="a"; x="model"')), BAD),
        (form(part(b'form-data; filename="a\\"; name=\\"model"; name="b"')), BAD),
        (form(part(b'form-data; name="a" name="model"')), BAD),
        (form(part(b'form-data; name="\xff"')), BAD),
        (form(part(b"form-data")), BAD),
        (form(part(b'attachment; name="model"')), BAD),
        (form(part(b'form-data; name="a"', b"v", b'content-disposition: form-data; name="model"')), BAD),
        (form(part(b'form-data; name="model"', b"a", b"Content-Transfer-Encoding: base64")), BAD),
        (form(part(b'form-data;\r\n name="model"')), BAD),
        (form(part(b'form-data; name="a"\nContent-Disposition: form-data; name="model"')), BAD),
        (form(part(b'form-data; name="a"\rX: y')), BAD),
        (form(part(b'form-data; name="a"', b"v", b"X : y")), BAD),
        (form(b"--x\r\n\r\nvalue\r\n"), BAD),
        (form(b"--x\r\nvalue\r\n"), BAD),
        (form(part(b'form-data; name="a"', b"v", b"X: " + b"y" * 5000)), BAD),
        (form(*[field(b"a")] * (MAX_PARTS + 1)), BAD),
        (form(*[field(b"a")] * MAX_PARTS), {}),
    ],
)
def test_one_plain_spelling_or_refused(body: bytes, expected: dict[str, str] | Reason):
    for kind in (bytes, memoryview):
        answer = read_form(kind(body), b"x", WATCHED)
        assert (answer.reason if isinstance(answer, Refusal) else answer) == expected


def email_reads(body: bytes) -> list[str]:
    """The model names that the standard library's lenient parser finds."""
    message = BytesParser(policy=HTTP).parsebytes(
        b"Content-Type: multipart/form-data; boundary=x\r\n\r\n" + body
    )
    return [
        (found.get_payload(decode=True) or b"").decode("utf-8", "replace")
        for found in message.walk()
        if str(found.get_param("name", "", "content-disposition")).casefold() == "model"
    ]


def careless_reads(body: bytes) -> list[str]:
    """The model names of a reader that splits at anything like a boundary and looks for name= anywhere."""
    found = []
    for piece in body.split(b"--x")[1:]:
        head, _, value = piece.replace(b"\r\n", b"\n").partition(b"\n\n")
        if re.search(rb'[; \n"]name="?model\b', head, re.IGNORECASE):
            found.append(value.removesuffix(b"\n").decode("utf-8", "replace"))
    return found


PIECES = st.sampled_from(
    [
        field(b"model", b"small"),
        field(b"model", b"huge"),
        field(b"MODEL", b"huge"),
        field(b"prompt", b'name="model"'),
        FILE,
        part(b'form-data; name="file"; filename="model"'),
        part(b'form-data; name="a"; filename="b; name=model"'),
        b"\r\n",
        b"\n",
        b"--x\r\n",
        b"--x\n",
        b"--x--\r\n",
        b'Content-Disposition: form-data; name="model"\r\n\r\nhuge\r\n',
        b'Content-Disposition: form-data; name="model"\n\nhuge\n',
        b" ",
        b"\\",
        b'"',
        b"\x00",
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES, max_size=6), st.booleans())
def test_what_is_accepted_is_read_alike_by_lenient_readers(pieces: list[bytes], closed: bool):
    body = b"".join(pieces) + (b"--x--\r\n" if closed else b"")
    answer = read_form(body, b"x", WATCHED)
    if isinstance(answer, Refusal):
        return
    model = [answer["model"]] if "model" in answer else []
    assert email_reads(body) == model
    if b"filename" not in body:
        assert careless_reads(body) == model


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=30), st.integers(0, 200))
def test_any_bytes_get_an_answer(junk: bytes, at: int):
    body = form(field(b"model", b"a"), FILE)
    assert isinstance(read_form(body[:at] + junk + body[at:], b"x", WATCHED), (dict, Refusal))
