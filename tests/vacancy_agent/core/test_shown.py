from __future__ import annotations

import pytest

from vacancy_agent.core.shown import ModelShown, ModelsShown


@pytest.mark.parametrize(("on_cards", "wholly"), [(0, False), (9, False), (10, True), (11, True)])
def test_a_model_is_on_cards_wholly_or_not(on_cards: int, wholly: bool):
    assert ModelShown("m", "d", 1, None, 10, on_cards).on_gpu is wholly


def test_rows_are_found_by_name():
    rows = tuple(ModelShown(name, "d", 1, None, 1, 1) for name in ("m", "n", "m"))
    assert len(ModelsShown(rows).named("m")) == 2
    assert ModelsShown(rows).named("x") == ModelsShown(rows).named(None) == ()
