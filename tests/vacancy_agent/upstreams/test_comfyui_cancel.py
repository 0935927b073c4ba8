from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.clock import FakeClock
from vacancy_agent.core.parse.comfyui import release_of
from vacancy_agent.upstreams.ask import Answer
from vacancy_agent.upstreams.comfyui import ComfyUi, Queue
from vacancy_agent.upstreams.comfyui_cancel import ASK_AGAIN, Cancelling

if TYPE_CHECKING:
    from vacancy_agent.core.parse.comfyui import Release


class Client:
    """What was sent to the server."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, object]] = []

    async def request(self, method: str, path: str, json: object = None) -> Answer:
        self.sent.append((path, json))
        return Answer(200, b"")

    async def post(self, path: str, json: object) -> Answer:
        return await self.request("POST", path, json)


class Server(ComfyUi):
    """A ComfyUI of this release, with this queue."""

    def __init__(self, release: str, running: str, *pending: str) -> None:
        self.client = Client()
        super().__init__(self.client)  # type: ignore[arg-type]
        self.told = release_of(release)
        self.shown = Queue(frozenset({running} - {""}), frozenset(pending))

    async def release(self) -> Release | None:
        return self.told

    async def queue(self) -> Queue:
        return self.shown


def ours(prompt_id: str) -> bool:
    return prompt_id.startswith("our")


@pytest.mark.parametrize(
    ("release", "sent"),
    [
        ("0.28.1", [("/api/jobs/our1/cancel", None)]),
        ("0.26.0", [("/api/jobs/our1/cancel", None)]),
        ("0.25.9", [("/interrupt", {"prompt_id": "our1"})]),
        ("0.3.57", [("/interrupt", {"prompt_id": "our1"})]),
        ("0.3.56", [("/interrupt", None)]),
        ("unknown", [("/interrupt", None)]),
    ],
)
async def test_what_runs_is_stopped_by_the_narrowest_request(release: str, sent: list[object]) -> None:
    server = Server(release, "our1", "our2")
    await Cancelling(FakeClock()).once(server, {"our1"}, ours)
    assert server.client.sent == sent


@pytest.mark.parametrize("release", ["0.3.40", "0.28.1"])
async def test_what_waits_is_taken_out_of_the_queue(release: str) -> None:
    server = Server(release, "theirs", "our1", "our2", "our3", "theirs too")
    round_ = Cancelling(FakeClock())
    await round_.once(server, {"our1", "our2", "gone"}, ours)
    assert server.client.sent == [("/queue", {"delete": ["our1", "our2"]})]
    assert round_.why == "2 wait, 0 run"


async def test_an_old_release_stops_nothing_beside_somebody_elses_prompt() -> None:
    server = Server("0.3.56", "our1", "theirs")
    round_ = Cancelling(FakeClock())
    await round_.once(server, {"our1"}, ours)
    assert server.client.sent == []
    assert "somebody else" in round_.why


async def test_what_the_queue_does_not_show_is_not_named() -> None:
    server = Server("0.28.1", "theirs", "theirs too")
    round_ = Cancelling(FakeClock())
    await round_.once(server, {"our1"}, ours)
    assert server.client.sent == []
    assert round_.why == ""


async def test_a_stop_takes_a_while_and_is_asked_for_again_only_then() -> None:
    clock = FakeClock()
    server, round_ = Server("0.28.1", "our1"), Cancelling(clock)
    await round_.once(server, {"our1"}, ours)
    clock.advance(ASK_AGAIN - 0.1)
    await round_.once(server, {"our1"}, ours)
    assert len(server.client.sent) == 1
    clock.advance(0.2)
    await round_.once(server, {"our1"}, ours)
    assert len(server.client.sent) == 2


async def test_one_that_began_to_run_meanwhile_is_stopped_in_the_next_round() -> None:
    server, round_ = Server("0.28.1", "our1", "our2"), Cancelling(FakeClock())
    await round_.once(server, {"our1", "our2"}, ours)
    server.shown = Queue(frozenset({"our2"}), frozenset())
    await round_.once(server, {"our1", "our2"}, ours)
    assert server.client.sent[-1] == ("/api/jobs/our2/cancel", None)
