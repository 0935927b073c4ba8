"""Holds between ledger, journal and keeper: each is in both, or in neither, and is freed once."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from standins.clock import FakeClock
from standins.hosts import host, resource, upstream, vacant
from vacancy_agent.core.facts import Instant, Percent, ProcessIdentity, Ready, Seconds, WallTime
from vacancy_agent.core.job import Job, JobId, Phase, ReleasedBy
from vacancy_agent.core.ledger import Ledger
from vacancy_agent.core.settings import Dialect, ResourceType, SamplingSettings, Target
from vacancy_agent.proxy.host import HeldSlot
from vacancy_agent.proxy.prompts import PromptIds
from vacancy_agent.store.journal import HoldJournal, PartitionSpec
from vacancy_agent.store.state import StateDir
from vacancy_agent.upstreams.proofs import Ended
from vacancy_agent.wiring.holds import Holds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vacancy_agent.core.settings import HostSettings

LLM, OTHER = PartitionSpec("llm", 4, local=True), PartitionSpec("other", 2, local=True)
SERVER = ProcessIdentity(4242, 17.5)


def settings() -> HostSettings:
    resources = (resource("ram", ResourceType.MEMORY), resource("gpu"))
    ups = (
        upstream("llm", ("ram",), slots=4),
        upstream("other", ("gpu",), dialect=Dialect.OPENAI, port=9001),
    )
    return host(ups, resources)


class Rig:
    """One run of an agent as far as holds are concerned; `again` is its next run."""

    def __init__(self, folder: Path, boot: str = "boot-1") -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.sampled: list[tuple[str, ...]] = []
        self.board = vacant(settings(), self.clock.now())
        self.ledger = Ledger(settings(), self.board)
        self.journal = HoldJournal(folder / "holds", boot)
        self.state = StateDir(folder)
        self.host: Any = SimpleNamespace(
            clock=self.clock,
            board=self.board,
            ledger=self.ledger,
            held_slots={},
            requests={},
            tracked={},
            prompt_ids=PromptIds(),
            sampler=SimpleNamespace(soon=lambda names: self.sampled.append(tuple(names))),
            tell=lambda event, **facts: self.told.append((event, facts)),
            reclaiming=SimpleNamespace(job_ended=lambda *_ended: None),
        )
        self.holds = Holds(self.host, self.journal, self.state)
        self.next: Rig | None = None

    def configure(self, *specs: PartitionSpec) -> None:
        self.holds.restore(self.journal.configure(specs or (LLM, OTHER)))

    def admit(self, name: str = "llm", model: str = "m") -> Job:
        """A job that is forwarded: in ledger and journal."""
        job = self.ledger.reserve(name, self.clock.now(), borrower="ci", model=model, process=SERVER)
        assert isinstance(job, Job)
        partition = self.journal.partition(name)
        slot = partition.write(job.id, "ci", model, self.clock.wall(), SERVER)
        self.host.requests[job.id] = SimpleNamespace(job=job, slot=slot)
        return job

    def hold(self, name: str = "llm") -> Job:
        """Its borrower has left."""
        job = self.admit(name)
        request = self.host.requests.pop(job.id)
        self.ledger.hold(job.id, "the borrower left", self.clock.now())
        slot = HeldSlot(self.journal.partition(name), request.slot, self.clock.wall())
        self.host.held_slots[job.id] = slot
        return job

    def held(self) -> list[tuple[int, str]]:
        return [(job.id, job.upstream) for job in self.ledger.holds()]

    def in_journal(self, name: str = "llm") -> int:
        return len(self.journal.partition(name).holds())

    def again(self, boot: str = "boot-1", *, killed: bool = True) -> Rig:
        """The next run, on what the journal kept."""
        if not killed:
            self.journal.close()
        self.state.close()
        self.next = Rig(self.folder, boot)
        return self.next

    def close(self) -> None:
        self.state.close()
        if self.next is not None:
            self.next.close()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    one = Rig(tmp_path)
    one.configure()
    yield one
    one.close()


def test_what_ran_when_the_agent_was_killed_is_held_as_it_was(rig: Rig):
    rig.clock.advance(100)
    first, second = rig.admit(model="a"), rig.hold("other")
    after = rig.again()
    after.clock.advance(130)
    after.configure()
    assert sorted(after.held()) == [(first.id, "llm"), (second.id, "other")]
    job = after.ledger.job(first.id)
    assert job is not None
    assert (job.borrower, job.model, job.process) == ("ci", "a", SERVER)
    assert job.why == "the agent ended while it ran"
    assert job.since == pytest.approx(after.clock.now() - 30), "since it was admitted, on this run's clock"
    assert [event for event, _ in after.told] == ["held", "held"]


def test_a_restored_hold_takes_its_place_and_new_numbers_begin_after_it(rig: Rig):
    rig.admit("other")
    after = rig.again()
    after.configure()
    refused = after.ledger.reserve("other", after.clock.now(), borrower="lab")
    assert not isinstance(refused, Job), "the card is still taken"
    assert after.admit().id > 1


def test_releasing_frees_ledger_journal_and_resource_once(rig: Rig):
    job = rig.hold("other")
    assert rig.holds.release(job.id, ReleasedBy.ADMINISTRATOR, "they know")
    assert (rig.held(), rig.in_journal("other")) == ([], 0)
    assert rig.sampled == [("gpu",)]
    assert rig.told[-1] == (
        "freed",
        {"upstream": "other", "job": job.id, "by": "administrator", "why": "they know"},
    )
    assert not rig.holds.release(job.id, ReleasedBy.ADMINISTRATOR, "twice")
    assert not rig.holds.release(JobId(999), ReleasedBy.PROOF, "never was")


def test_what_still_runs_cannot_be_declared_ended(rig: Rig):
    job = rig.admit()
    assert not rig.holds.release(job.id, ReleasedBy.ADMINISTRATOR, "impatient")
    assert job.phase is Phase.FORWARDING
    assert rig.in_journal() == 1


def test_an_upstream_that_is_taken_out_and_comes_back_has_each_hold_once(rig: Rig):
    first, second = rig.hold(), rig.hold()
    rig.configure(OTHER)
    assert rig.held() == [(first.id, "llm"), (second.id, "llm")], "their resources are still taken"
    rig.configure(LLM, OTHER)
    assert rig.held() == [(first.id, "llm"), (second.id, "llm")]
    for job in (first, second):
        assert rig.holds.release(job.id, ReleasedBy.PROOF, "idle")
    assert (rig.held(), rig.in_journal()) == ([], 0)


def test_a_job_that_still_runs_while_its_upstream_is_out_is_not_a_hold_when_it_comes_back(rig: Rig):
    job = rig.admit()
    rig.configure(OTHER)
    rig.configure(LLM, OTHER)
    assert rig.held() == []
    assert [one.id for one in rig.ledger.jobs()] == [job.id]


def test_an_upstream_that_is_out_when_the_agent_starts_keeps_its_holds_for_later(rig: Rig):
    job = rig.hold()
    after = rig.again(killed=False)
    after.configure(OTHER)
    assert after.held() == []
    after.configure(LLM, OTHER)
    assert after.held() == [(job.id, "llm")]


def test_a_number_that_another_job_has_is_given_anew(rig: Rig):
    rig.hold()
    after = rig.again()
    after.configure(OTHER)
    other = after.hold("other")
    assert other.id == 1
    after.configure(LLM, OTHER)
    assert sorted(after.held()) == [(1, "other"), (2, "llm")]
    assert after.holds.release(JobId(2), ReleasedBy.PROOF, "idle")
    assert after.in_journal() == 0
    assert after.in_journal("other") == 1


def test_a_reboot_has_replaced_a_local_server_and_voids_its_holds(rig: Rig):
    rig.admit()
    after = rig.again("boot-2")
    after.configure()
    assert after.held() == []


def test_a_damaged_entry_is_a_hold_of_nobody(rig: Rig):
    rig.admit()
    rig.journal.partition("llm")._slots[
        next(i for i, used in enumerate(rig.journal.partition("llm")._used) if used)
    ][5] ^= 0xFF
    after = rig.again()
    after.configure()
    ((number, name),) = after.held()
    job = after.ledger.job(JobId(number))
    assert job is not None
    assert (name, job.borrower, job.model) == ("llm", "unknown", None)
    assert job.why == "its entry in the hold journal is damaged"
    assert after.holds.release(job.id, ReleasedBy.ADMINISTRATOR, "they know")
    assert after.in_journal() == 0


def test_an_upstream_elsewhere_starts_as_held_after_a_power_cut(tmp_path: Path):
    away = PartitionSpec("llm", 4, local=False)
    before = Rig(tmp_path)
    before.configure(away)
    after = before.again("boot-2")
    after.configure(away)
    ((number, _),) = after.held()
    job = after.ledger.job(JobId(number))
    assert job is not None
    assert job.why == "the machine stopped without notice while work may have run"
    before.close()


def test_a_clock_that_was_set_back_makes_no_job_younger_than_now(rig: Rig):
    rig.clock.advance(3600)
    job = rig.admit()
    after = rig.again()
    after.configure()
    found = after.ledger.job(job.id)
    assert found is not None
    assert found.since == Instant(after.clock.now())


def test_what_the_keeper_is_shown_is_what_is_held_now(rig: Rig):
    job = rig.hold()
    rig.admit()
    (shown,) = rig.holds._held("llm")
    assert (shown.id, shown.process, shown.admitted) == (job.id, SERVER, job.since)
    rig.holds._ended("llm", (Ended(job.id, ReleasedBy.PROOF, "its slots are idle"),))
    assert rig.holds._held("llm") == []


async def test_two_upstreams_of_one_server_are_looked_at_as_one(rig: Rig):
    same = settings().upstreams["llm"]
    ups = {
        "a": same,
        "b": upstream("b", ("gpu",), port=9003),
        "c": upstream("c", ("gpu",), target=Target("http", "127.0.0.1", 8081)),
    }
    rig.holds.watch(None, ups)  # type: ignore[arg-type]  # nothing is asked yet
    assert rig.holds.locals["a"] is rig.holds.locals["b"]
    assert rig.holds.locals["c"] is not rig.holds.locals["a"]
    kept = rig.holds.locals["a"]
    rig.holds.watch(None, {"a": same})  # type: ignore[arg-type]
    assert rig.holds.locals == {"a": kept}, "over a reload: looks at a server must stay apart in time"
    assert len(rig.holds._servers) == 1


def test_a_gpus_figure_counts_until_the_next_one_however_seldom_it_is_read(rig: Rig):
    seldom = replace(settings(), sampling=SamplingSettings(pressure_interval=Seconds(10)))
    rig.board.reconfigure(seldom)
    rig.board.served_load["gpu", "other"] = Ready(Percent(97.0), rig.clock.now())
    rig.clock.advance(10.5)
    assert rig.holds._gpu_use("other") == 97.0, "a server that computes on a GPU alone is not quiet"
    rig.clock.advance(1.0)
    assert rig.holds._gpu_use("other") is None


def test_wall_times_of_an_older_run_are_taken_as_they_are(rig: Rig):
    rig.admit()
    after = rig.again()
    after.configure()
    assert {slot.started for slot in after.host.held_slots.values()} == {WallTime(rig.clock.wall())}
