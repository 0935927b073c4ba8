from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.hosts import NOON, START, host, upstream, vacant
from vacancy_agent.core.facts import Instant, MiB, Ready, Unknown
from vacancy_agent.core.job import Job, JobId, Phase
from vacancy_agent.core.priors import PriorKey
from vacancy_agent.core.settings import Dialect
from vacancy_agent.core.shown import ModelShown, ModelsShown
from vacancy_agent.core.verdict import Admit
from vacancy_agent.proxy.models import Applied, Models
from vacancy_dialects import RunnerAsk

if TYPE_CHECKING:
    from vacancy_agent.core.facts import Seconds

RUNNER = RunnerAsk(v1=False, num_ctx=2048)
CREDITED = Admit(MiB(300), True, "resident: because")


class Looks:
    soons = 0

    def soon(self) -> None:
        self.soons += 1

    async def fresh(self, within: Seconds) -> None:
        raise AssertionError("nobody asked")


class Rig:
    def __init__(self, dialect: Dialect = Dialect.OLLAMA) -> None:
        self.board = vacant(host([upstream(dialect=dialect, requires=("gpu", "cpu"))]))
        self.looks = Looks()
        self.told: list[tuple[str, dict[str, object]]] = []
        self.models = Models(
            "llm", dialect, self.board, self.looks, lambda event, **facts: self.told.append((event, facts))
        )

    def job(self, model: str | None = "m:latest") -> Job:
        resources = ("gpu", "cpu")
        return Job(JobId(1), "llm", resources, Phase.FORWARDING, Instant(START), "ci", model, None)


def test_an_ollama_request_is_asked_about_with_its_runner_and_its_prior():
    rig = Rig()
    assert rig.models.ask("m:latest", RUNNER) == ("llm", "m:latest", None, RUNNER)
    rig.board.priors.load([(PriorKey("llm", "m:latest", 2048), {"gpu": MiB(7)})])
    assert rig.models.ask("m:latest", RUNNER).prior == {"gpu": 7}
    assert rig.models.ask("m:latest", RunnerAsk(v1=True)).prior is None
    assert rig.models.ask(None, None) == ("llm", None, None, None)


@pytest.mark.parametrize("dialect", [Dialect.LLAMACPP, Dialect.COMFYUI])
def test_a_server_that_names_no_loaded_model_has_no_priors(dialect: Dialect):
    rig = Rig(dialect)
    rig.board.priors.load([(PriorKey("llm", "m"), {"gpu": MiB(7)})])
    assert rig.models.ask("m", None).prior is None
    rig.models.admitted(rig.job(), None, Admit(), NOON)
    assert rig.board.priors.watches == {}


def test_a_credit_is_told_and_shown_until_the_next_admission():
    rig = Rig()
    rig.models.admitted(rig.job(), RUNNER, CREDITED, NOON)
    assert rig.models.applied == Applied("m:latest", "resident: because", MiB(300), NOON)
    assert rig.told == [
        (
            "credited",
            {"upstream": "llm", "job": 1, "model": "m:latest", "charged": 300, "why": "resident: because"},
        )
    ]
    rig.models.admitted(rig.job(), RUNNER, Admit(MiB(300)), NOON)
    assert rig.models.applied is None
    assert len(rig.told) == 1


def test_what_an_allocator_holds_is_told_and_shown_like_a_credit():
    rig = Rig(Dialect.COMFYUI)
    rig.models.admitted(rig.job(), None, Admit(MiB(8_000), False, "added: 2000 MiB", MiB(2_000)), NOON)
    assert rig.models.applied == Applied("m:latest", "added: 2000 MiB", MiB(8_000), NOON)
    assert [event for event, _ in rig.told] == ["credited"]


def test_a_job_is_measured_on_what_has_memory_and_was_read():
    rig = Rig()
    rig.models.admitted(rig.job(), RUNNER, Admit(), NOON)
    assert set(rig.board.priors.watches) == {"gpu"}
    rig = Rig()
    rig.board.set_capacity("gpu", Unknown("lost"))
    rig.models.admitted(rig.job(), RUNNER, Admit(), NOON)
    assert rig.board.priors.watches == {}


def test_a_job_with_options_of_its_own_makes_no_model_look_large():
    rig = Rig()
    rig.models.admitted(rig.job(), RunnerAsk(v1=False, num_ctx=2048, other_options=True), Admit(), NOON)
    rig.models.admitted(rig.job(), RUNNER, Admit(), NOON)
    assert not rig.board.priors.sampled("gpu", MiB(1))
    assert rig.models.ask("m:latest", RUNNER).prior is None


def test_an_end_is_followed_by_a_look_and_teaches_the_context():
    rig = Rig()
    rig.models.admitted(rig.job(), RUNNER, Admit(), NOON)
    rig.models.ended(rig.job(), RUNNER, Instant(START + 1), served=True)
    assert rig.looks.soons == 1
    row = ModelShown("m:latest", "d", 8192, None, 1, 1)
    rig.board.contexts.observed("llm", ModelsShown((row,)), Instant(START + 2))
    assert rig.board.contexts.reused(row, RUNNER) is not None
    assert isinstance(rig.board.capacity["gpu"], Ready)


def test_a_job_without_a_model_teaches_nothing():
    rig = Rig()
    rig.models.admitted(rig.job(None), None, Admit(), NOON)
    rig.models.ended(rig.job(None), None, Instant(START), served=True)
    assert rig.looks.soons == 1
