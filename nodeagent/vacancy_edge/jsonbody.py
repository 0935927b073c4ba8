"""The top level of a JSON body, read so that every server reads the same.

Invariant: what `read_object` returns is what a reader takes that keeps the first of two equal keys, one that
keeps the last, one that compares keys exactly and one that folds their case; where these would differ the
body is refused. The failure this prevents: `{"model":"small","MODEL":"huge"}` is judged as small and loads
huge.

1. One decode of the top level; values stay undecoded. The parser is strict (no NaN, no trailing data, no
   BOM).
2. The text is UTF-8 throughout; the parser does not look inside the strings it skips.
3. At most 64 keys, of bounded length.
4. No key occurs twice. The decode has merged equal keys, so this needs the bytes: the sizes of all keys and
   values and of the punctuation add up to the size of the body exactly when nothing was merged, no key holds
   an escape and there is no white space between tokens. Otherwise the top level is walked, value by value,
   without looking into them.
5. No two keys are equal when their case is folded.

Clients send the same keys again and again. Lists of keys that steps 3 and 5 have passed are remembered, so
that only the bytes of a body are looked at anew.

Scanning all bytes in Python was rejected: 16 us a KB, against under 1 us for all of this on a compact body.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Final

import msgspec

from vacancy_edge.refusals import ambiguous_body, bad_request, shown

if TYPE_CHECKING:
    from collections.abc import Collection

    from vacancy_edge.refusal import Refusal

MAX_KEYS: Final = 64
MAX_NAMES: Final = 64 << 10
"""Characters of all keys together. What is done for each of them would hold up the loop for megabytes."""
_MOST_LISTS: Final = 128
_LONGEST_LIST: Final = (
    512  # characters of all keys together; such lists come from borrowers, hence the bounds
)
_PIECE: Final = 1 << 20

_OBJECT: Final[msgspec.json.Decoder[dict[str, msgspec.Raw]]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
decode_top: Final = _OBJECT.decode
_STR: Final[msgspec.json.Decoder[str]] = msgspec.json.Decoder(str)
_OPEN: Final = re.compile(rb"[ \t\r\n]*\{")
_KEY: Final = re.compile(rb'[ \t\r\n]*("(?:[^"\\]++|\\.)*+")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_KEYS: Final = re.compile(r"[a-z0-9_-]*")  # of which nobody has to ask how they are written
_AFTER: Final = re.compile(rb"[ \t\r\n]*([,}])")

plain_lists: Final[dict[tuple[str, ...], tuple[int, bytes]]] = {}
"""Lists of keys that are plain: of ASCII, in lower case. For each, the bytes of a compact body that are not
values, and how Python's json module puts the values between the keys."""

Top = dict[str, msgspec.Raw]
Span = tuple[int, int]


def read_object(
    body: bytes | memoryview, watched: Collection[str], extra: Collection[str] = ()
) -> Top | Refusal:
    """The top-level keys and raw values of `body` (they borrow its memory), or why it is refused.

    `watched` are the keys that decide something, in lower case: none of them may be there in another
    spelling.
    """
    try:
        top = decode_top(body)  # 1
    except RecursionError:
        return ambiguous_body("The JSON body is nested too deeply. Send at most a few hundred levels.")
    except msgspec.ValidationError:
        return bad_request("The body must be a JSON object.")
    except msgspec.DecodeError as error:
        return _malformed(error, body)
    ascii_only = isinstance(body, bytes) and body.isascii()
    known = plain_lists.get(tuple(top))  # 3, 5
    if known is not None and ascii_only:  # 2
        around, spaced = known
        if sum(map(len, top.values())) + around == len(body) or spaced % tuple(top.values()) == body:  # 4
            return top
    if not ascii_only and not _is_utf8(body):  # 2
        return bad_request("The JSON body is not UTF-8 throughout. Encode it as UTF-8.")
    return _ambiguous(top, body, (watched, extra)) or top


def _ambiguous(top: Top, body: bytes | memoryview, watched: tuple[Collection[str], ...]) -> Refusal | None:
    pairs = len(top)
    if pairs > MAX_KEYS:  # 3
        return bad_request(f"The JSON body has more than {MAX_KEYS} top-level keys. Send fewer.")
    names = "".join(top)
    if len(names) > MAX_NAMES:
        return bad_request("The top-level keys of the JSON body are too long.")
    plain = names.isascii() and names == names.lower()
    # Two quotes, a colon and a comma for each pair; two braces, and the last pair has no comma.
    compact = plain and sum(map(len, top.values())) + len(names) + 4 * pairs + 1 == len(body)
    if not (compact or walk(top, body) is not None):  # 4
        return ambiguous_body("A top-level key of the JSON body occurs twice. Send each key once.")
    if not plain:
        return _folded(top, watched)  # 5
    if len(names) <= _LONGEST_LIST and _KEYS.fullmatch(names):
        _remember(top, len(names))
    return None


def _remember(top: Top, length: int) -> None:
    """Keep this list of keys, in bounds. A full store starts anew: simpler than an order."""
    if len(plain_lists) >= _MOST_LISTS:
        plain_lists.clear()
    spaced = b"{%b}" % b", ".join([b'"%b": %%b' % key.encode() for key in top])
    plain_lists[tuple(top)] = (length + 4 * len(top) + 1, spaced)


def _folded(top: Top, watched: tuple[Collection[str], ...]) -> Refusal | None:
    if len({fold(key) for key in top}) < len(top):
        return ambiguous_body("Two top-level keys of the JSON body differ only in case. Send each key once.")
    for key in top:
        folded = fold(key)
        if folded != key and any(folded in keys for keys in watched):
            return ambiguous_body(f'Write the key "{shown(key)}" as "{folded}".')
    return None


def fold(key: str) -> str:
    """`key` as a reader that ignores case compares it; both directions, since readers fold either way."""
    return key.upper().casefold()


def walk(top: Top, body: bytes | memoryview) -> dict[str, Span] | None:
    """Where each pair of `body` lies (first byte of the key, first after the value), or None.

    None: a key occurs twice. `top` is the decode of `body`, so `body` is known to be one JSON object. A key
    that occurs twice has the value of its last occurrence in `top`: either the bytes at the first one are not
    that value, or they are, and the walk, which may trust their length, comes to the key again.
    """
    spans: dict[str, Span] = {}
    opening = _OPEN.match(body)
    at = opening.end() if opening else 0
    while match := _KEY.match(body, at):
        key = _STR.decode(match[1])
        value = top[key]
        start, end = match.end(), match.end() + len(value)
        if key in spans or not _same(body, start, end, value):
            return None
        spans[key] = (match.start(1), end)
        after = _AFTER.match(body, end)
        at = after.end() if after else end
    whole = len(spans) == len(top) and (not top or bytes(body[at - 1 : at]) == b"}")
    return spans if whole else None


def cut_spans(spans: dict[str, Span], keys: Collection[str]) -> list[Span]:
    """The bytes to take out, commas included, so that the pairs `keys` are gone from the object."""
    cuts: list[Span] = []
    ordered = [*spans.items()]
    kept_before = False
    for index, (key, (start, end)) in enumerate(ordered):
        if key not in keys:
            kept_before = True
        elif kept_before:
            cuts.append((ordered[index - 1][1][1], end))
        else:
            cuts.append((start, ordered[index + 1][1][0] if index + 1 < len(ordered) else end))
    return cuts


def _same(body: bytes | memoryview, start: int, end: int, value: msgspec.Raw) -> bool:
    if end - start <= _PIECE:
        return bytes(body[start:end]) == bytes(value)
    view = memoryview(value)
    return end <= len(body) and all(
        bytes(body[at : min(at + _PIECE, end)]) == bytes(view[at - start : at - start + _PIECE])
        for at in range(start, end, _PIECE)
    )


def _is_utf8(body: bytes | memoryview) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for at in range(0, len(body), _PIECE):
            decoder.decode(body[at : at + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _malformed(error: msgspec.DecodeError, body: bytes | memoryview) -> Refusal:
    if "trailing characters" in str(error):
        return ambiguous_body("Something follows the JSON object. Send one object and nothing after it.")
    if bytes(body[:3]) == codecs.BOM_UTF8:
        return bad_request("The JSON body starts with a byte order mark. Send it without.")
    return bad_request(f"The body is not valid JSON: {error}.")
