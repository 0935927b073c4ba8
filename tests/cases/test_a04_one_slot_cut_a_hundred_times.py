"""A04: a place that can take one job is locked out after a cancelled stream, or is given back twice.

Seen as BerriAI/litellm#30020. Right: however a request ends, its slot is given back exactly once, and the
next request is admitted as soon as a proof allows.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from standins import agreement
from standins.borrowers import Borrower
from standins.http_text import DONE, LAST, STREAM_HEAD, WORD, answer, request
from standins.lending_rig import BORROW, LendingRig
from standins.until import until
from vacancy_agent.core.job import ReleasedBy

if TYPE_CHECKING:
    from pathlib import Path

    from standins.agents import Lender
    from standins.http_engine import Client
    from standins.openai_server import OpenAiStandin

ROUNDS = 100
STREAM = {"model": "m", "stream": True}
WHOLE = STREAM_HEAD + WORD * 4 + DONE + LAST


def order(rig: LendingRig) -> Client:
    return rig.port.connect(request(body=STREAM, token=BORROW))


def cut(rig: LendingRig, client: Client, rng: random.Random) -> str:
    """End the request at a random byte of its answer, by a random end of it."""
    said = WHOLE[: rng.randrange(len(WHOLE))]
    if said:
        rig.port.link().send(said)
    how = rng.choice(["fin", "reset", "upstream", "owner"])
    if how == "fin":
        client.hang_up()
    elif how == "reset":
        client.break_off(ConnectionResetError())
    elif how == "upstream":
        rig.port.link().break_off()
    else:
        rig.reclaim.owner_returned(rig.clock.now())
        rig.advance(31.0)  # the drain's end
        rig.observe()
    return how


@pytest.mark.parametrize("seed", range(3))
def test_a_hundred_rounds(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret
    rig = LendingRig(tmp_path)
    for number in range(1, ROUNDS + 1):
        client = order(rig)
        assert rig.port.app.counters.admitted == number
        busy = answer(order(rig).got())
        assert (busy.status, busy.reason) == (503, "resource_busy")
        cut(rig, client, rng)
        assert not rig.host.requests
        (held,) = rig.host.ledger.holds()
        agreement.check(rig.host, rig.journal, rig.reclaims)
        assert answer(order(rig).got()).reason == "resource_busy", "nothing is proved yet"
        assert rig.holds.release(held.id, ReleasedBy.PROOF, "its server is idle")
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)
    assert rig.journal.partition("up").holds() == ()
    rig.tidy()


def test_a_reply_that_comes_whole_gives_the_slot_back_at_once(tmp_path: Path) -> None:
    rig = LendingRig(tmp_path)
    for _ in range(ROUNDS):
        client = order(rig)
        rig.port.link().send(WHOLE)
        assert answer(client.got()) == answer(WHOLE)
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)
    rig.tidy()


@pytest.mark.component
async def test_on_real_sockets_each_cut_is_followed_by_an_admission(
    lent: Lender, standin: OpenAiStandin
) -> None:
    rng = random.Random(4)  # noqa: S311 - no secret
    for delay in (30.0, 0.0, 0.0, 0.0):
        standin.forget()
        async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
            await borrower.chat(stream=True, standin={"head_delay_s": delay, "chunks": 200, "every_s": 0.02})
            await until(standin.seen)
            if not delay:
                await borrower.until(b"w%d " % rng.randrange(20))
            borrower.leave(reset=rng.random() < 0.5)
        await lent.until(lambda up: up["held"] == 1 and up["active"] == 0)
        agreement.check(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)
        await lent.until(lambda up: up["held"] == 0)
        async with lent.chat() as reply:
            assert reply.status == 200
    agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)
    assert lent.counts() == {"client_closed": 4, "completed": 4}
