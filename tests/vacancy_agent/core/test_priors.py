from __future__ import annotations

from standins.hosts import START, memory, vacant
from vacancy_agent.core.facts import Instant, MiB, Ready
from vacancy_agent.core.priors import MOST_KEYS, PriorKey, Priors

K, OTHER = PriorKey("llm", "sha256:1", 4096), PriorKey("llm", "sha256:2", 4096)


def free(**mib: int) -> dict[str, MiB]:
    return {name: MiB(value) for name, value in mib.items()}


def test_the_largest_drop_stays() -> None:
    priors = Priors()
    priors.began(K, free(gpu=20_000, ram=30_000))
    assert priors.sampled("gpu", MiB(12_000))
    assert not priors.sampled("gpu", MiB(15_000))
    assert priors.sampled("ram", MiB(29_000))
    priors.ended(["gpu", "ram"])
    priors.began(K, free(gpu=12_000))
    assert not priors.sampled("gpu", MiB(11_000)), "a loaded model takes little more"
    assert priors.of(K) == free(gpu=8_000, ram=1_000)
    assert priors.of(OTHER) is None


def test_memory_that_grew_teaches_nothing() -> None:
    priors = Priors()
    priors.began(K, free(gpu=1_000))
    assert not priors.sampled("gpu", MiB(2_000))
    assert priors.of(K) is None


def test_a_drop_of_several_models_is_credited_to_none() -> None:
    priors = Priors()
    priors.began(K, free(gpu=20_000))
    priors.began(K, free(gpu=19_000))
    assert priors.sampled("gpu", MiB(19_500)), "the first job's reading is the baseline"
    priors.began(OTHER, free(gpu=19_500))
    assert not priors.sampled("gpu", MiB(5_000))
    priors.ended(["gpu"])
    priors.began(OTHER, free(gpu=20_000))
    assert priors.sampled("gpu", MiB(5_000))
    assert priors.of(K) == free(gpu=500)


def test_without_work_nothing_is_learned() -> None:
    assert not Priors().sampled("gpu", MiB(1))


def test_the_mapping_is_the_same_object_until_it_changes() -> None:
    priors = Priors()
    priors.load([(K, free(gpu=100))])
    first = priors.of(K)
    priors.began(K, free(gpu=1_000))
    priors.sampled("gpu", MiB(950))
    assert priors.of(K) is first
    priors.sampled("gpu", MiB(800))
    assert priors.of(K) is not first


def test_what_was_saved_comes_back() -> None:
    priors, again = Priors(), Priors()
    priors.load([(K, free(gpu=100, ram=5))])
    again.load([(K, free(gpu=50, ram=9))])
    again.load(priors.items())
    assert again.of(K) == free(gpu=100, ram=9)


def test_names_of_models_do_not_pile_up() -> None:
    priors = Priors()
    priors.load([(PriorKey("llm", str(i)), free(gpu=1)) for i in range(MOST_KEYS + 5)])
    assert len(list(priors.items())) == MOST_KEYS
    assert priors.of(PriorKey("llm", "4")) is None
    assert priors.of(PriorKey("llm", "5")) is not None


def test_another_model_under_the_name_starts_anew() -> None:
    priors = Priors()
    for context in (None, 2048):
        priors.load([(PriorKey("ollama", "m", context), {"gpu": MiB(5)})])
    priors.load([(PriorKey("ollama", "n"), {"gpu": MiB(5)})])
    priors.forget("ollama", "m")
    assert [key.model for key, _ in priors.items()] == ["n"]


def test_a_model_that_stays_loaded_shows_in_the_first_reading_after_its_job() -> None:
    board = vacant(free=10_000)
    key = PriorKey("llm", "m")
    board.work_began("gpu")
    board.priors.began(key, {"gpu": MiB(10_000)})
    board.work_ended("gpu", Instant(START + 1))
    board.set_capacity("gpu", Ready(memory(9_000), Instant(START + 0.5)))
    assert board.priors.of(key) == {"gpu": 1_000}
    board.set_capacity("gpu", Ready(memory(2_000), Instant(START + 2)))
    assert board.priors.of(key) == {"gpu": 8_000}
    board.set_capacity("gpu", Ready(memory(0), Instant(START + 3)))
    assert board.priors.of(key) == {"gpu": 8_000}, "somebody else's"
