"""What the engine needs from the code that uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from vacancy_http.exchange import Exchange
    from vacancy_http.faults import Ending, ProtocolFault
    from vacancy_http.reply import Reply, ResponseHead


class BodyBudget(Protocol):
    """Bytes of request bodies that may be held at once.

    The path of every request counts in `used` itself: it never raises it past `total`, and gives back what it
    took.
    """

    used: int
    total: int

    def reserve(self, n: int, /) -> bool:
        """Take `n` bytes; False (and nothing taken) when they are not there."""

    def release(self, n: int, /) -> None:
        """Give `n` bytes back."""


class Application(Protocol):
    """Decides what becomes of each exchange. Calls are made on the loop and must neither block nor raise.

    Any of the exchange's methods may be called from within these calls.
    """

    @property
    def budget(self) -> BodyBudget:
        """Where bodies reserve their bytes."""

    def fault_reply(self, fault: ProtocolFault, detail: str, /) -> Reply:
        """Word the answer to an error the engine found; `detail` is a sentence for people."""

    def head_received(self, x: Exchange, /) -> None:
        """A head came: one of `respond`, `collect_body`, or without a body `forward` or `tunnel` follows.

        Where `x.small` is there already, it is the whole body, and `forward` or `pass_on` may follow at once.
        """

    def body_received(self, x: Exchange, /) -> None:
        """`x.body` is complete. `respond` or `forward`, now or, while `x.alive`, later."""

    def response_started(self, x: Exchange, head: ResponseHead, /) -> None:
        """The upstream's head came; `head.headers` may be edited and `x.tap` set."""

    def exchange_ended(self, x: Exchange, ending: Ending, /) -> None:
        """The exchange is over, the upstream done or closed. Once for each that `head_received` saw."""
