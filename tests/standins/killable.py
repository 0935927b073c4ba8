"""An agent on one state directory, killed and started again and again."""

from __future__ import annotations

import os
from pathlib import Path
from signal import SIGKILL
from typing import TYPE_CHECKING, Any, Self

from standins.agent_process import AgentProcess
from standins.borrowers import Borrower
from standins.killed_agent import ARMED
from standins.until import until
from vacancy_agent.store.journal_format import HEADER_SIZE, SLOT_SIZE, read_slot, slot_range

if TYPE_CHECKING:
    from standins.openai_server import OpenAiStandin
    from vacancy_agent.store.journal_format import HoldRecord

FOR_EVER = {"lingers_s": 3600}
"""The server works on for a client that is gone, until the test says otherwise (`let_go`)."""
ENDLESS = FOR_EVER | {"chunks": 999, "every_s": 0.05}
INTERRUPTED = "the agent ended while it ran"
TESTS = Path(__file__).resolve().parents[1]


class Machine:
    """One machine; `with` waits until it lends, and ends it for good.

    `planted`: the agent can be told to die at a point of its code (`dies_at`).
    """

    def __init__(self, folder: Path, document: dict[str, Any], *, planted: bool = False) -> None:
        self.folder = folder
        self.document = document
        self.port: int = document["spec"]["upstreams"][0]["port"]
        self._point = folder / "dies-at"
        self._options: dict[str, Any] = {}
        if planted:
            paths = (TESTS, TESTS.parent / "hack", os.environ.get("PYTHONPATH", ""))
            path = os.pathsep.join(str(one) for one in paths if str(one))
            self._options = {
                "program": ("-m", "standins.killed_agent"),
                "env": {ARMED: str(self._point), "PYTHONPATH": path},
            }
        self.agent = AgentProcess(folder, document, **self._options)

    def __enter__(self) -> Self:
        self.agent.lends()
        return self

    def __exit__(self, *error: object) -> None:
        self.agent.__exit__(*error)

    def kill(self) -> None:
        """Now, from outside."""
        assert self.agent.end(SIGKILL) == -SIGKILL

    def dies_at(self, point: str) -> None:
        """It kills itself when it comes to this point."""
        self._point.write_text(point)

    async def died(self) -> None:
        """Wait until it has killed itself, and see to it that the next one does not."""
        await until(lambda: self.agent.process.poll() is not None, within=30)
        assert self.agent.process.returncode == -SIGKILL, self.agent.text
        self._point.unlink()

    def start(self) -> None:
        """Another run on what the one before left."""
        self.agent = AgentProcess(self.folder, self.document, **self._options)
        self.agent.ready()

    async def borrower(self, port: int = 0) -> Borrower:
        """Whose connection goes to the first upstream, or to the one at `port`."""
        return await Borrower.at(port or self.port, self.agent.tokens["borrow"])

    def holds(self) -> list[dict[str, Any]]:
        """What is held, as an administrator sees it."""
        found: list[dict[str, Any]] = self.agent.ask("GET", "/admin/holds", scope="admin")[1]["holds"]
        return found

    def written(self) -> list[HoldRecord]:
        """The jobs that the journal of the first upstream has, as they are written there."""
        content = (self.agent.state / "holds" / "up.holds").read_bytes()
        slots = range((len(content) - HEADER_SIZE) // SLOT_SIZE)
        return [record for slot in slots if (record := read_slot(content[slot_range(slot)])) is not None]

    async def refusal(self) -> str:
        """The reason that a request gets now; empty: it is served."""
        async with await self.borrower() as borrower:
            await borrower.chat()
            return (await borrower.answer()).reason

    async def comes_free(self, standin: OpenAiStandin) -> None:
        """Once the server has ended its work every hold is freed by that proof, and the next is served."""
        assert await self.refusal() == "resource_busy"
        assert standin.report()["running"] > 0
        standin.let_go()
        await until(lambda: not self.holds(), within=30)
        assert "by=proof" in self.agent.text
        assert await self.refusal() == ""
