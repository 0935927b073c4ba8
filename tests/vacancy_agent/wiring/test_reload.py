"""What a changed manifest does, and above all what it does not."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from standins.agents import manifest
from standins.certificates import write_certificate
from vacancy_agent.store.errors import StoreError
from vacancy_agent.store.state import StateDir
from vacancy_agent.wiring import reload
from vacancy_agent.wiring.config import content_of
from vacancy_agent.wiring.contract_apart import JudgeError
from vacancy_agent.wiring.reload import PATIENCE, Reload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vacancy_agent.wiring.config import Configuration


class Recorder:
    """Takes every configuration it is given, except while it is `full`."""

    def __init__(self) -> None:
        self.applied: list[Configuration] = []
        self.refused: list[list[str]] = []
        self.full = False

    async def apply(self, config: Configuration) -> None:
        if self.full:
            raise StoreError("cannot write the hold journal: disk full")
        self.applied.append(config)

    def refuse_config(self, errors: list[str]) -> None:
        self.refused.append(errors)

    @property
    def slots(self) -> list[int]:
        return [config.host.upstreams["up"].slots for config in self.applied]


class Watch:
    """A manifest in a file, and a reload that looks when it is told to."""

    def __init__(self, folder: Path, state: StateDir) -> None:
        self.path = folder / "host.json"
        self.agent = Recorder()
        self.document = manifest("http://127.0.0.1:9", slots=1)
        self.write()
        self.reload = Reload(self.path, content_of(self.path), state, state.tokens())

    def write(self, **changes: Any) -> None:
        self.document["spec"]["upstreams"][0].update(changes)
        self.path.write_text(json.dumps(self.document))

    def look(self, *, asked: bool = False) -> None:
        asyncio.run(self.reload._look(self.agent, asked=asked))


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDir]:
    found = StateDir(tmp_path / "state")
    yield found
    found.close()


@pytest.fixture
def watch(tmp_path: Path, state: StateDir) -> Watch:
    return Watch(tmp_path, state)


def test_what_the_agent_was_started_with_is_not_applied_again(watch: Watch):
    watch.look()
    watch.write()
    watch.look()
    assert (watch.agent.applied, watch.agent.refused) == ([], [])


def test_a_change_is_applied_once(watch: Watch):
    watch.write(slots=2)
    watch.look()
    watch.look()
    assert watch.agent.slots == [2]


def test_an_invalid_one_names_every_error_and_is_told_once(watch: Watch):
    watch.write(slots=0, dialect="gopher")
    watch.look()
    watch.look()
    (errors,) = watch.agent.refused
    assert {line.split(":")[0] for line in errors} == {"spec.upstreams[0].slots", "spec.upstreams[0].dialect"}
    assert watch.agent.applied == []


def test_going_back_to_what_runs_is_a_change_too(watch: Watch):
    watch.write(slots=0)
    watch.look()
    watch.write(slots=1)
    watch.look()
    assert watch.agent.slots == [1], "so that it no longer counts as refused"


def test_a_file_that_is_gone_for_a_moment_changes_nothing(watch: Watch):
    kept = watch.path.read_bytes()
    watch.path.unlink()
    watch.look()
    watch.look(asked=True)
    watch.path.write_bytes(kept)
    watch.look()
    assert (watch.agent.applied, watch.agent.refused) == ([], [])


def test_a_file_that_stays_away_is_told_once_and_taken_up_again(watch: Watch):
    kept = watch.path.read_bytes()
    watch.path.unlink()
    for _ in range(3 * PATIENCE):
        watch.look()
    told = f"{watch.path} cannot be read: No such file or directory; what was applied last goes on"
    assert (watch.agent.applied, watch.agent.refused) == ([], [[told]])
    watch.path.write_bytes(kept)
    watch.look()
    assert watch.agent.slots == [1], "so that it no longer counts as refused"


def test_a_manifest_that_can_be_read_only_once_is_not_missed(watch: Watch):
    watch.path.unlink()
    os.mkfifo(watch.path)
    for _ in range(2 * PATIENCE):
        watch.look()
    assert watch.agent.refused == []


def test_a_file_that_comes_back_changed_is_applied(watch: Watch):
    watch.path.unlink()
    watch.look()
    watch.write(slots=3)
    watch.look()
    assert watch.agent.slots == [3]


def test_whoever_asks_gets_it_applied_unchanged(watch: Watch):
    watch.look(asked=True)
    assert watch.agent.slots == [1]


def test_a_missing_secret_is_named_and_picked_up_when_it_is_written(watch: Watch, state: StateDir):
    watch.write(slots=2, credentialSecretRef={"name": "up", "key": "token"})
    watch.look()
    watch.look()
    assert watch.agent.applied == []
    assert all(
        error[0].startswith("spec.upstreams[0].credentialSecretRef: ") for error in watch.agent.refused
    )
    file = state.path / "secrets" / "up" / "token"
    assert str(file) in watch.agent.refused[0][0]
    file.parent.mkdir(parents=True)
    file.write_text("sesame\n")
    watch.look()
    watch.look()
    assert watch.agent.slots == [2]


def test_a_missing_certificate_too(watch: Watch, state: StateDir):
    watch.document["spec"]["access"]["tls"] = {"secretRef": {"name": "cert"}}
    watch.write()
    watch.look()
    assert "tls.crt" in watch.agent.refused[0][0]
    write_certificate(state.path / "secrets" / "cert")
    watch.look()
    assert watch.agent.slots == [1]


def test_a_full_disk_is_named_and_tried_again(watch: Watch):
    watch.agent.full = True
    watch.write(slots=2)
    watch.look()
    assert watch.agent.refused == [["cannot write the hold journal: disk full"]]
    watch.agent.full = False
    watch.look()
    watch.look()
    assert watch.agent.slots == [2]


def test_what_waits_gives_way_to_what_is_newer(watch: Watch):
    watch.agent.full = True
    watch.write(slots=2)
    watch.look()
    watch.agent.full = False
    watch.write(slots=0)
    watch.look()
    watch.look()
    assert watch.agent.applied == [], "the one that waited is no longer what the file says"
    watch.write(slots=4)
    watch.look()
    assert watch.agent.slots == [4]


async def test_it_looks_at_once_when_asked_and_goes_on_looking(watch: Watch):
    running = asyncio.get_running_loop().create_task(watch.reload.run(watch.agent))
    for expected in (1, 2, 3):
        watch.reload.asked.set()
        async with asyncio.timeout(10):
            while len(watch.agent.applied) < expected:  # noqa: ASYNC110 - a thread is in between
                await asyncio.sleep(0.005)
    running.cancel()
    await asyncio.wait({running})


def test_a_machine_that_cannot_judge_is_asked_again_at_the_next_look(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
):
    def cannot(*_: object) -> Configuration:
        raise JudgeError("the manifest could not be judged: no memory")

    watch.write(slots=2)
    with monkeypatch.context() as broken:
        broken.setattr(reload, "judge", cannot)
        watch.look()
    assert watch.agent.refused == [["the manifest could not be judged: no memory"]]
    assert watch.agent.applied == []
    watch.look()
    assert watch.agent.slots == [2]
