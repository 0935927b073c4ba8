from __future__ import annotations

import pytest

from standins.hosts import START
from vacancy_agent.core.contexts import MOST, Contexts, Kind
from vacancy_agent.core.facts import Instant
from vacancy_agent.core.shown import ModelShown, ModelsShown
from vacancy_dialects import RunnerAsk

UNSET, V1 = RunnerAsk(v1=False), RunnerAsk(v1=True)
OTHER = RunnerAsk(v1=False, num_ctx=2048, other_options=True)


def asks(num_ctx: int) -> RunnerAsk:
    return RunnerAsk(v1=False, num_ctx=num_ctx)


def row(context: int | None, digest: str = "d", name: str = "m:latest") -> ModelShown:
    return ModelShown(name, digest, context, None, 1, 1)


def at(seconds: float) -> Instant:
    return Instant(START + seconds)


def served(contexts: Contexts, runner: RunnerAsk, ended: float = 1, *, well: bool = True) -> None:
    contexts.began("up", "m:latest", runner)
    contexts.ended("up", "m:latest", runner, at(ended), served=well)


def seen(contexts: Contexts, context: int | None, seconds: float = 2, digest: str = "d") -> None:
    contexts.observed("up", ModelsShown((row(context, digest),)), at(seconds))


def known(contexts: Contexts, context: int, runner: RunnerAsk, digest: str = "d") -> bool:
    return contexts.reused(row(context, digest), runner) is not None


def test_an_explicit_context_is_known_by_itself_and_no_other_is():
    contexts = Contexts()
    assert contexts.reused(row(2048), asks(2048)) == "the request asks for it"
    for resident, runner in ((2048, asks(4096)), (4096, UNSET), (4096, V1)):
        assert not known(contexts, resident, runner)
    assert contexts.reused(row(None), asks(2048)) is None
    assert contexts.reused(row(0), asks(0)) is None


@pytest.mark.parametrize("runner", [UNSET, V1, asks(2048)])
def test_what_a_request_of_the_kind_left_loaded_is_known_for_its_kind_alone(runner: RunnerAsk):
    contexts = Contexts()
    served(contexts, runner)
    seen(contexts, 8192)
    assert contexts.reused(row(8192), runner) == "seen with a request of this kind"
    assert not known(contexts, 4096, runner)
    assert not known(contexts, 8192, runner, digest="another model of that name")
    for other in {UNSET, V1, asks(4096)} - {runner}:
        assert not known(contexts, 8192, other)


def test_a_number_under_v1_is_no_number():
    contexts = Contexts()
    served(contexts, V1)
    seen(contexts, 4096)
    assert known(contexts, 4096, RunnerAsk(v1=True, num_ctx=9))


def test_the_newest_sight_counts():
    contexts = Contexts()
    for context in (4096, 8192):
        served(contexts, UNSET)
        seen(contexts, context)
    assert not known(contexts, 4096, UNSET)
    assert known(contexts, 8192, UNSET)


def test_parallel_slots_are_seen_and_then_a_number_alone_says_nothing():
    contexts = Contexts()
    served(contexts, asks(2048))
    seen(contexts, 8192)
    assert known(contexts, 8192, asks(2048))
    assert not known(contexts, 8192, asks(8192)), "it would be loaded with four times as much"
    contexts.modelfile("d", 8192)
    assert not known(contexts, 8192, UNSET)
    served(contexts, asks(2048))
    seen(contexts, 2048)
    assert known(contexts, 8192, asks(8192)), "the server runs one slot now"
    assert known(contexts, 8192, UNSET)


@pytest.mark.parametrize(("asked", "given"), [(1, 4), (2, 4), (512, 2048), (1024, 2048)])
def test_a_context_that_was_raised_to_the_least_shows_no_parallel_slots(asked: int, given: int):
    contexts = Contexts()
    served(contexts, asks(asked))
    seen(contexts, given)
    assert known(contexts, 8192, asks(8192)), "one borrower's odd request takes nobody else's credit"


def test_a_modelfile_is_read_once_for_each_digest_and_counts_for_unset_contexts():
    contexts = Contexts()
    shown = ModelsShown((row(8192), row(4096, "e", "n:latest")))
    assert [one.digest for one in contexts.unread(shown)] == ["d", "e"]
    contexts.modelfile("d", 8192)
    contexts.modelfile("e", None)
    assert list(contexts.unread(shown)) == []
    assert contexts.reused(row(8192), V1) == contexts.reused(row(8192), UNSET) == "its Modelfile sets it"
    assert not known(contexts, 4096, UNSET)
    assert not known(contexts, 4096, UNSET, digest="e")
    assert not known(contexts, 8192, asks(4096)), "the request's own number goes before it"


def not_served(contexts: Contexts) -> None:
    served(contexts, UNSET, well=False)


def older_look(contexts: Contexts) -> None:
    served(contexts, UNSET, ended=3)


def another_kind_since(contexts: Contexts) -> None:
    served(contexts, UNSET)
    contexts.began("up", "m:latest", V1)


def another_kind_meanwhile(contexts: Contexts) -> None:
    contexts.began("up", "m:latest", V1)
    served(contexts, UNSET)


def other_options_since(contexts: Contexts) -> None:
    served(contexts, UNSET)
    served(contexts, OTHER)


def another_upstream(contexts: Contexts) -> None:
    contexts.began("other", "m:latest", UNSET)
    contexts.ended("other", "m:latest", UNSET, at(1), served=True)


@pytest.mark.parametrize(
    "happened",
    [
        not_served,
        older_look,
        another_kind_since,
        another_kind_meanwhile,
        other_options_since,
        another_upstream,
    ],
)
def test_nothing_is_learned_where_something_else_may_have_loaded_it(happened):
    contexts = Contexts()
    happened(contexts)
    seen(contexts, 4096)
    assert list(contexts.items()) == []
    assert contexts.version == 0


@pytest.mark.parametrize("rows", [(), (row(4096), row(4096)), (row(None),)])
def test_nothing_is_learned_from_no_row_two_rows_or_no_number(rows: tuple[ModelShown, ...]):
    contexts = Contexts()
    served(contexts, UNSET)
    contexts.observed("up", ModelsShown(rows), at(2))
    seen(contexts, 4096, 3)
    assert list(contexts.items()) == [], "a later look may show what somebody else loaded"


def test_requests_of_one_kind_side_by_side_teach_with_the_last():
    contexts = Contexts()
    contexts.began("up", "m:latest", UNSET)
    served(contexts, UNSET)
    seen(contexts, 4096)
    assert known(contexts, 4096, UNSET)
    contexts.ended("up", "m:latest", UNSET, at(5), served=False)
    seen(contexts, 8192, 6)
    assert known(contexts, 4096, UNSET)


def test_an_end_that_nobody_began_is_nothing():
    Contexts().ended("up", "m", UNSET, at(1), served=True)


def test_what_was_learned_is_kept_and_loaded_and_bounded():
    contexts = Contexts()
    kept = [(Kind("d", False, number), 2 * number) for number in range(1, MOST + 3)]
    contexts.load(kept)
    assert list(contexts.items()) == kept[2:]
    again = Contexts()
    again.load(contexts.items())
    assert list(again.items()) == kept[2:]
    assert again.version


def test_what_modelfiles_set_is_bounded():
    contexts = Contexts()
    for number in range(MOST + 1):
        contexts.modelfile(str(number), 8192)
    shown = ModelsShown((row(8192, "0", "a:latest"), row(8192, "1", "b:latest")))
    assert [one.digest for one in contexts.unread(shown)] == ["0"]
