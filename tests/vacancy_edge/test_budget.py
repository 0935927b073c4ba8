from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vacancy_edge import Budget


def test_what_does_not_fit_takes_nothing():
    budget = Budget(10)
    assert budget.reserve(10)
    assert not budget.reserve(1)
    assert (budget.used, budget.refused) == (10, 1)
    budget.release(4)
    assert budget.reserve(4)


def test_a_double_release_is_found():
    budget = Budget(10)
    budget.reserve(5)
    budget.release(5)
    with pytest.raises(ValueError, match="1 bytes released of 0 reserved"):
        budget.release(1)


def test_a_lower_limit_holds_for_what_comes():
    budget = Budget(10)
    budget.reserve(8)
    budget.total = 4
    assert not budget.reserve(0)
    budget.release(8)
    assert budget.reserve(4)


@given(st.lists(st.integers(0, 50)))
def test_the_sum_never_passes_the_total(sizes: list[int]):
    budget = Budget(100)
    held = [size for size in sizes if budget.reserve(size)]
    assert budget.used == sum(held) <= 100
