"""Parts that must not end: the agent ends with them, and says which it was.

Invariant: no agent runs without one of its parts. A collector that has ended leaves readings that grow stale
for ever, a proxy without its socket an upstream that nobody can borrow, and both would answer `/healthz` as
if nothing were wrong; whoever supervises the process can restart only what has ended. A return is as wrong as
an exception. Rejected: restarting the part in here, which hides a bug behind a machine that sometimes lends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator


class PartEndedError(Exception):
    """An essential part has ended; the message names it, the cause says why where there is one."""


async def essential(name: str, part: Callable[[], Awaitable[object]]) -> None:
    """Run a part that ends by cancellation alone; it is not even made where it is cancelled before it begins.

    Raises:
        PartEndedError: it returned, or raised.
        StoreError: the state directory failed it, which the agent says in its own words.
    """
    try:
        await part()
    except (StoreError, PartEndedError):
        raise
    except Exception as error:
        why = "; ".join(f"{type(one).__name__}: {one}" for one in leaves(error))
        raise PartEndedError(f"{name} failed: {why}") from error
    raise PartEndedError(f"{name} ended")


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions of which a group is made, however deep; of any other, itself."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from leaves(one)
    else:
        yield error


def must_listen(deaf: Iterable[str]) -> None:
    """Nothing, where `deaf` is empty.

    Raises:
        PartEndedError: a socket that was had does not accept connections any more.
    """
    names = ", ".join(deaf)
    if names:
        raise PartEndedError(f"stopped listening: {names}")
