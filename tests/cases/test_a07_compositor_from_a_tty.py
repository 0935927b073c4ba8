"""A07: logind calls a user idle who is working, since the compositor was started from a console.

Seen as swaywm/swayidle#4 and systemd/systemd#14053: the hint falls back to the access time of the terminal.
Right: no evidence of absence. It refuses as incomplete, `/status` says why, and a lock or a logout lends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins import agreement
from standins.borrowers import Borrower
from standins.desks import lent_desk, presence_signal

if TYPE_CHECKING:
    from pathlib import Path

    from lab.logind_lab import LogindLab
    from standins.openai_server import OpenAiStandin

pytestmark = [pytest.mark.component, pytest.mark.logind]


async def test_it_refuses_says_why_and_lends_when_locked_or_left(
    standin: OpenAiStandin, logind_lab: LogindLab, tmp_path: Path
) -> None:
    async with lent_desk(tmp_path, standin, logind_lab) as lent:
        console = await logind_lab.create(type="tty", seat="seat0", desktop="", runs="sway")
        await lent.until(lambda up: not up["lendable"])
        async with lent.chat() as got:
            assert (got.status, got.headers["X-Vacancy-Reason"]) == (503, "owner_active")
            assert got.headers["Retry-After"] == "30"
            assert (await got.json())["error"]["detail"] == {"cause": "incomplete_evidence"}
        status = await lent.status()
        assert status["owner"]["presence"] == "unclear"
        assert "started from a console" in status["owner"]["why"]
        assert (await presence_signal(lent))[:2] == ("False", "IncompleteEvidence")
        await logind_lab.hint(console, locked=True)
        await lent.until(lambda up: up["lendable"])
        await logind_lab.hint(console, locked=False)
        await lent.until(lambda up: not up["lendable"])
        await logind_lab.logout(console)
        await lent.until(lambda up: up["lendable"])
        async with lent.chat() as got:
            assert got.status == 200


async def test_work_that_runs_is_not_cut_by_what_is_no_evidence(
    standin: OpenAiStandin, logind_lab: LogindLab, tmp_path: Path
) -> None:
    """It refuses the new; the owner's veto, which cuts, needs somebody to have been seen."""
    async with (
        lent_desk(tmp_path, standin, logind_lab) as lent,
        await Borrower.at(lent.port, lent.tokens.borrow) as borrower,
    ):
        await borrower.chat(stream=True, standin={"chunks": 30, "every_s": 0.1})
        await borrower.until(b"w0 ")
        await logind_lab.create(type="tty", seat="seat0", desktop="", runs="sway")
        await lent.until(lambda up: up["reason"] == "owner_active")
        await borrower.until(b"[DONE]")
        agreement.check(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)
        assert lent.counts() == {"completed": 1}
