"""What the user reads: numbered steps with their time, and no character that a terminal would act upon."""

from __future__ import annotations

import json
import textwrap
import time
import unicodedata

INDENT = " " * 11
WIDTH = 88
"""Characters of a line after the indent."""
SHOWN = 72
"""Characters of an answer."""
UNPRINTABLE = "·"
RIGHT_TO_LEFT = frozenset({"R", "AL", "RLE", "RLO", "RLI"})


class Transcript:
    """Prints as things happen."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._step = 0

    def step(self, title: str) -> None:
        """The next thing begins."""
        self._step += 1
        print(f"\n[{time.monotonic() - self._began:5.1f} s] {self._step}. {title}", flush=True)

    def say(self, text: str) -> None:
        """One or several lines; a long one is wrapped."""
        for line in text.splitlines() or [""]:
            for part in wrapped(line):
                print(f"{INDENT}{part}".rstrip(), flush=True)


def wrapped(line: str) -> list[str]:
    """The line in pieces of at most `WIDTH` characters; the later ones are indented."""
    if len(line) <= WIDTH:
        return [line]
    indent = line[: len(line) - len(line.lstrip())] + "  "
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def printable(text: str, *, ascii_only: bool = False) -> str:
    """The beginning of a model's answer, fit for any terminal.

    Random weights produce control characters, halves of UTF-8 sequences and letters that turn the direction
    of the line; each is shown as a dot, as are all others that are not ASCII where `ascii_only`.
    """
    shown = "".join(one if _is_harmless(one, ascii_only=ascii_only) else UNPRINTABLE for one in text)
    return f"{shown[: SHOWN - 3]}..." if len(shown) > SHOWN else shown


def indented(body: str) -> str:
    """JSON for people; anything else as it is."""
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except ValueError:
        return printable(body)


def _is_harmless(character: str, *, ascii_only: bool) -> bool:
    if character.isascii() or ascii_only:
        return character.isascii() and character.isprintable()
    if unicodedata.combining(character) or unicodedata.bidirectional(character) in RIGHT_TO_LEFT:
        return False
    return character.isprintable() and character != "\N{REPLACEMENT CHARACTER}"
