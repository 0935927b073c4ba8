"""What a body asks for beyond its model."""

from __future__ import annotations

from vacancy_dialects import PromptAsk, RunnerAsk


def test_a_request_that_says_nothing_sets_nothing() -> None:
    assert RunnerAsk(v1=False) == RunnerAsk(False, None, False)


def test_equal_asks_are_one_key() -> None:
    assert len({RunnerAsk(True), RunnerAsk(True), RunnerAsk(False)}) == 2
    assert PromptAsk("a", None) == PromptAsk("a", None)
