from __future__ import annotations

import pytest

from vacancy_dialects.paths import decoded, plain_segment, resolve_dots


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        (b"/a/b", b"/a/b"),
        (b"/a/./b", b"/a/b"),
        (b"/a/../b", b"/b"),
        (b"/../../b", b"/b"),
        (b"/a/..", b"/"),
        (b"/a/.", b"/a/"),
        (b"/a//../b", b"/a/b"),
        (b"//a", b"//a"),
        (b"/a/...", b"/a/..."),
        (b"/a/.b/c", b"/a/.b/c"),
        (b"/.", b"/"),
    ],
)
def test_dot_segments_go_and_nothing_else(path: bytes, resolved: bytes):
    assert resolve_dots(path) == resolved


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        (b"/a", b"/a"),
        (b"/%73lots", b"/slots"),
        (b"/a%2Fb", b"/a/b"),
        (b"/%2573", b"/%73"),
        (b"/%ff", b"/\xff"),
        (b"/%", None),
        (b"/%2", None),
        (b"/%zz", None),
        (b"/a+b", b"/a+b"),
    ],
)
def test_percent_decoding_is_done_once_or_not_at_all(path: bytes, plain: bytes | None):
    assert decoded(path) == plain


@pytest.mark.parametrize(
    ("segment", "plain"),
    [
        (b"resp_1", True),
        (b"a.b~c", True),
        (b"", False),
        (b".", False),
        (b"..", False),
        (b"a/b", False),
        (b"a\\b", False),
        (b"a%62", False),
        (b"a;b", False),
        (b"a?b", False),
        (b"a\x00", False),
        (b"a\n", False),
        (b"\xc3\xa9", False),
    ],
)
def test_a_segment_is_plain_or_not(segment: bytes, plain: bool):
    assert plain_segment(segment) is plain
