"""What the agent and its helper process tell each other, a datagram a message."""

from __future__ import annotations

from typing import Final

import msgspec

from vacancy_api.reasons import Reason
from vacancy_dialects import BodyRule, BodyShape, Match, Route, RouteClass
from vacancy_edge.bodies import Judged  # noqa: TC001 - msgspec reads the annotations
from vacancy_edge.refusal import Refusal

MAX_MESSAGE: Final = 128 << 10
"""Bytes; a question holds a Content-Type, which the head's limit bounds, and an answer a model name."""


class Question(msgspec.Struct, frozen=True, array_like=True):
    """Judge the `length` bytes of the file that comes with this message, by these parts of a route."""

    length: int
    shape: BodyShape
    background_refused: bool
    relay_fields: tuple[str, ...]
    content_type: bytes | None
    relay: bool
    body: BodyRule = BodyRule.PLAIN

    @classmethod
    def about(cls, route: Route, length: int, content_type: bytes | None, *, relay: bool) -> Question:
        """The question about a body that is judged."""
        fields = tuple(sorted(route.relay_fields))
        return cls(length, route.shape, route.background_refused, fields, content_type, relay, route.body)

    def match(self) -> Match:
        """As much of the match as judging needs."""
        route = Route(
            methods=(),
            path="",
            cls=RouteClass.WORK,
            shape=self.shape,
            body=self.body,
            background_refused=self.background_refused,
            relay_fields=frozenset(self.relay_fields),
        )
        return Match(RouteClass.WORK, route, b"", "")


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What the body asks for, or the refusal in its parts.

    `length` is the length of the file where an edit has made it longer.
    """

    judged: Judged | None
    reason: Reason | None = None
    message: str = ""
    length: int | None = None

    def verdict(self) -> Judged | Refusal:
        """The answer as the caller wants it."""
        if self.judged is not None:
            return self.judged
        return Refusal(self.reason or Reason.BAD_REQUEST, self.message)


encode: Final = msgspec.msgpack.Encoder().encode
decode_question: Final[msgspec.msgpack.Decoder[Question]] = msgspec.msgpack.Decoder(Question)
decode_answer: Final[msgspec.msgpack.Decoder[Answer]] = msgspec.msgpack.Decoder(Answer)
