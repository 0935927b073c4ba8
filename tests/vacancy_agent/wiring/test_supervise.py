"""A part that ends, ends the agent; which one it was is said."""

from __future__ import annotations

import asyncio

import pytest

from vacancy_agent.store.errors import StoreError
from vacancy_agent.wiring.supervise import PartEndedError, essential, must_listen


async def returns() -> None:
    pass


async def raises() -> None:
    raise LookupError("a bug")


async def lacks_space() -> None:
    raise StoreError("disk full")


async def test_a_return_is_as_wrong_as_an_exception():
    with pytest.raises(PartEndedError, match=r"^the collector ended$"):
        await essential("the collector", returns)
    with pytest.raises(PartEndedError, match=r"^the collector failed: LookupError: a bug$") as failed:
        await essential("the collector", raises)
    assert isinstance(failed.value.__cause__, LookupError)


async def test_what_a_group_hides_is_said():
    async def group() -> None:
        raise ExceptionGroup("one", [ExceptionGroup("two", [LookupError("a bug")]), OSError("a fault")])

    with pytest.raises(PartEndedError, match=r"^the collector failed: LookupError: a bug; OSError: a fault$"):
        await essential("the collector", group)


async def test_the_state_directory_speaks_for_itself():
    with pytest.raises(StoreError, match="disk full"):
        await essential("the store", lacks_space)


async def test_cancelled_before_it_began_it_is_never_made():
    task = asyncio.get_running_loop().create_task(essential("the collector", raises))
    task.cancel()  # a coroutine that was made and never awaited would be a warning, here an error
    with pytest.raises(asyncio.CancelledError):
        await task


def test_sockets_that_are_gone_are_named():
    must_listen([])
    with pytest.raises(PartEndedError, match=r"^stopped listening: the proxy of a, the API$"):
        must_listen(["the proxy of a", "the API"])
