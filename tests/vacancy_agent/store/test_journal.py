from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from vacancy_agent.core.facts import ProcessIdentity, WallTime
from vacancy_agent.store.errors import StoreError
from vacancy_agent.store.journal import HoldJournal, JournalFullError, PartitionSpec
from vacancy_agent.store.journal_format import HEADER_SIZE, SLOT_SIZE, HoldCause, Phase

BOOT, OTHER_BOOT = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
GPU = PartitionSpec("gpu", slots=1, local=True)
FAR = PartitionSpec("far", slots=2, local=False)
NOW = WallTime(1_800_000_000.0)


def opened(folder: Path, *specs: PartitionSpec, boot: str = BOOT):
    journal = HoldJournal(folder, boot)
    return journal, journal.configure(specs or (GPU, FAR))


def jobs(holds) -> list[int]:
    return sorted(hold.record.job for hold in holds if hold.record)


def test_a_new_journal_holds_nothing(tmp_path: Path):
    _, found = opened(tmp_path / "j")
    assert found == {"gpu": (), "far": ()}


def test_a_job_is_found_by_the_next_agent_until_it_is_freed(tmp_path: Path):
    journal, _ = opened(tmp_path)
    slot = journal.partition("gpu").write(7, "team-a", "llama:8b", NOW, ProcessIdentity(9, 1.5))
    journal.partition("far").write(8, "team-b", "", NOW)

    journal, found = opened(tmp_path)  # the first was never closed: as after a kill
    record = found["gpu"][0].record
    assert record is not None
    assert (record.job, record.borrower, record.model, record.started) == (7, "team-a", "llama:8b", NOW)
    assert record.process == ProcessIdentity(9, 1.5)
    assert jobs(found["far"]) == [8]

    journal.partition("gpu").free(slot)
    _, found = opened(tmp_path)
    assert found["gpu"] == ()


def test_the_prompt_of_a_job_is_found_by_the_next_agent_too(tmp_path: Path):
    journal, _ = opened(tmp_path)
    gpu = journal.partition("gpu")
    slot = gpu.write(7, "team-a", "sdxl", NOW, ProcessIdentity(9, 1.5))
    gpu.note_prompt(slot, "e186e2ca-b3f5-4bda-be65-4619f2694c33", confirmed=False)
    gpu.mark(slot, Phase.TRACKING)

    _, found = opened(tmp_path)
    record = found["gpu"][0].record
    assert record is not None
    assert (record.job, record.phase, record.model) == (7, Phase.TRACKING, "sdxl")
    assert (record.prompt, record.confirmed) == ("e186e2ca-b3f5-4bda-be65-4619f2694c33", False)


def test_a_slot_freed_twice_is_a_bug_that_shows(tmp_path: Path):
    journal, _ = opened(tmp_path)
    slot = journal.partition("gpu").write(7, "a", "m", NOW)
    journal.partition("gpu").free(slot)
    with pytest.raises(ValueError, match="free already"):
        journal.partition("gpu").free(slot)


def test_a_full_partition_refuses_and_takes_jobs_again_after_a_free(tmp_path: Path):
    journal, _ = opened(tmp_path)
    gpu = journal.partition("gpu")
    slots = [gpu.write(job, "a", "m", NOW) for job in range(gpu.capacity)]
    assert len(set(slots)) == gpu.capacity >= GPU.slots
    with pytest.raises(JournalFullError):
        gpu.write(99, "a", "m", NOW)
    gpu.free(slots[3])
    assert gpu.write(99, "a", "m", NOW) == slots[3]


def test_a_phase_is_noted(tmp_path: Path):
    journal, _ = opened(tmp_path)
    gpu = journal.partition("gpu")
    slot = gpu.write(7, "a", "m", NOW)
    gpu.mark(slot, Phase.HELD)
    record = gpu.holds()[0].record
    assert record is not None
    assert (record.job, record.phase) == (7, Phase.HELD)


def test_text_of_any_kind_and_length_is_taken(tmp_path: Path):
    journal, _ = opened(tmp_path)
    gpu = journal.partition("gpu")
    for text in ("", "é" * 200, "\ud800", "a\0b", "x" * 10_000, "\U0001f600" * 60):
        gpu.free(gpu.write(1, text, text, NOW))


def test_a_reboot_frees_local_jobs_and_keeps_far_ones(tmp_path: Path):
    journal, _ = opened(tmp_path)
    journal.partition("gpu").write(7, "a", "m", NOW)
    journal.partition("far").write(8, "a", "m", NOW)
    journal.close()
    _, found = opened(tmp_path, boot=OTHER_BOOT)
    assert found["gpu"] == ()
    assert jobs(found["far"]) == [8]
    assert [hold.cause for hold in found["far"]] == [HoldCause.INTERRUPTED]


def test_a_machine_that_stopped_without_notice_starts_with_its_far_upstreams_held(tmp_path: Path):
    opened(tmp_path)
    _, found = opened(tmp_path, boot=OTHER_BOOT)
    assert found["gpu"] == ()
    assert [hold.cause for hold in found["far"]] == [HoldCause.UNSEEN]


def test_a_damaged_slot_holds_its_own_upstream_only(tmp_path: Path):
    opened(tmp_path)
    path = tmp_path / "gpu.holds"
    raw = bytearray(path.read_bytes())
    raw[HEADER_SIZE + SLOT_SIZE + 5] ^= 0x10
    path.write_bytes(raw)
    journal, found = opened(tmp_path)
    assert [(hold.slot, hold.cause, hold.record) for hold in found["gpu"]] == [(1, HoldCause.DAMAGED, None)]
    assert found["far"] == ()
    journal.partition("gpu").free(1)  # by proof, as any other
    assert opened(tmp_path)[1]["gpu"] == ()


def test_an_empty_or_foreign_file_holds(tmp_path: Path):
    for content in (b"", b"something else", bytes(HEADER_SIZE)):
        (tmp_path / "gpu.holds").write_bytes(content)
        assert [hold.cause for hold in opened(tmp_path)[1]["gpu"]] == [HoldCause.UNSEEN]


def test_slots_grow_under_running_jobs(tmp_path: Path):
    journal, _ = opened(tmp_path, GPU)
    gpu = journal.partition("gpu")
    slot = gpu.write(7, "a", "m", NOW)
    before = gpu.capacity
    assert journal.configure([PartitionSpec("gpu", slots=60, local=True)]) == {}
    assert journal.partition("gpu") is gpu
    assert gpu.capacity >= 60 > before
    others = [gpu.write(100 + n, "a", "m", NOW) for n in range(60)]
    assert slot not in others
    gpu.free(slot)
    _, found = opened(tmp_path, PartitionSpec("gpu", slots=1, local=True))
    assert jobs(found["gpu"]) == list(range(100, 160)), "fewer slots never lose a hold"


def test_the_holds_of_a_removed_upstream_come_back_with_it(tmp_path: Path):
    journal, _ = opened(tmp_path)
    far = journal.partition("far")
    slot = far.write(8, "a", "m", NOW)
    other = far.write(9, "a", "m", NOW)
    assert journal.configure([GPU]) == {}
    assert journal.left_over() == ("far",)
    far.free(other)  # a job that was running when the upstream was removed still ends
    assert jobs(journal.configure([GPU, FAR])["far"]) == [8]

    journal.configure([GPU])
    journal.close()
    journal, found = opened(tmp_path, GPU)
    assert set(found) == {"gpu"}
    assert jobs(journal.configure([GPU, FAR])["far"]) == [8]
    journal.partition("far").free(slot)


def test_any_name_is_a_file_of_its_own_inside_the_folder(tmp_path: Path):
    names = ["../up", "a/b", "..", "ü", "a%2Fb"]
    folder = tmp_path / "j"
    journal, _ = opened(folder, *(PartitionSpec(name, 1, local=True) for name in names))
    for number, name in enumerate(names):
        journal.partition(name).write(number, "a", "m", NOW)
    assert len(list(folder.iterdir())) == len(names)
    assert list(tmp_path.iterdir()) == [folder]
    _, found = opened(folder, *(PartitionSpec(name, 1, local=True) for name in names))
    assert [jobs(found[name]) for name in names] == [[n] for n in range(len(names))]


def test_a_file_that_cannot_be_read_is_an_error_and_changes_nothing(tmp_path: Path):
    journal, _ = opened(tmp_path, GPU)
    (tmp_path / "far.holds").mkdir()
    with pytest.raises(StoreError, match=r"far\.holds"):
        journal.configure([GPU, FAR])
    assert journal.left_over() == ("far",)
    journal.partition("gpu").write(1, "a", "m", NOW)


class JournalMachine(RuleBasedStateMachine):
    """Jobs come and go, agents die and restart, slots grow: what was not freed is always found again."""

    slots = Bundle("slots")

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self._folder = tempfile.TemporaryDirectory()
        self.live: dict[int, int] = {}
        self.next_job = 1
        self.size = 1
        self.start()

    def start(self) -> None:
        self.journal = HoldJournal(Path(self._folder.name), BOOT)
        self.journal.configure([PartitionSpec("gpu", self.size, local=True)])

    @rule(target=slots)
    def write(self):
        try:
            slot = self.journal.partition("gpu").write(self.next_job, "a", "m", NOW)
        except JournalFullError:
            assert len(self.live) == self.journal.partition("gpu").capacity
            return -1
        self.live[slot] = self.next_job
        self.next_job += 1
        return slot

    @rule(slot=consumes(slots))
    def free(self, slot: int):
        if slot in self.live:
            self.journal.partition("gpu").free(slot)
            del self.live[slot]

    @rule(size=st.integers(1, 40))
    def resize(self, size: int):
        self.size = size
        self.journal.configure([PartitionSpec("gpu", size, local=True)])

    @rule(clean=st.booleans())
    def restart(self, clean: bool):
        if clean:
            self.journal.close()
        self.start()

    @invariant()
    def every_job_is_there(self):
        found = {hold.slot: hold.record.job for hold in self.journal.partition("gpu").holds() if hold.record}
        assert found == self.live

    def teardown(self) -> None:
        self.journal.close()
        self._folder.cleanup()


TestJournalMachine = JournalMachine.TestCase
TestJournalMachine.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)

WORKER = """
import os, sys
from pathlib import Path
from vacancy_agent.core.facts import WallTime
from vacancy_agent.store.journal import HoldJournal, PartitionSpec
journal = HoldJournal(Path(sys.argv[1]), sys.argv[2])
journal.configure([PartitionSpec("gpu", 4, local=True)])
gpu = journal.partition("gpu")
gpu.write(1, "a", "kept", WallTime(1.0))
job = 1
while True:
    job += 1
    slot = gpu.write(job, "a", "m" * 150, WallTime(1.0))
    os.write(1, b"written %d\\n" % job)
    os.write(1, b"freeing %d\\n" % job)
    gpu.free(slot)
    os.write(1, b"freed %d\\n" % job)
"""


def killed_after(folder: Path, delay: float) -> list[str]:
    """What the worker said before it was killed without notice."""
    command = [sys.executable, "-c", WORKER, str(folder), BOOT]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        said = os.read(worker.stdout.fileno(), 64)
        deadline = time.monotonic() + delay
        os.set_blocking(worker.stdout.fileno(), False)
        while time.monotonic() < deadline:
            said += worker.stdout.read() or b""
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        os.set_blocking(worker.stdout.fileno(), True)
        said += worker.stdout.read() or b""
    return said.decode().splitlines()


@pytest.mark.component
@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
@pytest.mark.parametrize("attempt", range(8))
def test_kill_9_at_any_point_loses_nothing(tmp_path: Path, attempt: int):
    said = killed_after(tmp_path, 0.003 * attempt)
    word, job = said[-1].split()
    _, found = opened(tmp_path, PartitionSpec("gpu", 4, local=True))
    held = jobs(found["gpu"])
    damaged = [hold for hold in found["gpu"] if hold.cause is HoldCause.DAMAGED]
    assert 1 in held, "a job that nobody freed is never lost"
    last = int(job)
    possible = {
        "written": [[1, last]],
        "freeing": [[1, last], [1]],  # the kill came before or after the free
        "freed": [[1], [1, last + 1]],  # ... before or after the next write
    }[word]
    assert held in possible or damaged, (said[-3:], held)


def test_a_file_that_cannot_grow_goes_on_as_it_was(tmp_path: Path):
    journal, _ = opened(tmp_path, GPU)
    gpu = journal.partition("gpu")
    slot = gpu.write(7, "a", "m", NOW)
    (tmp_path / "gpu.holds").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="extend the hold journal"):
        journal.configure([PartitionSpec("gpu", slots=60, local=True)])
    gpu.free(slot)
    gpu.write(8, "a", "m", NOW)
    assert jobs(gpu.holds()) == [8]
