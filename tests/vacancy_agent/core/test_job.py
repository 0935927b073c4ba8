from __future__ import annotations

from vacancy_agent.core.job import MOVES, RELEASES, Phase, ReleasedBy


def test_the_tables_know_every_phase() -> None:
    assert set(MOVES) == set(RELEASES) == set(Phase)


def test_no_phase_is_entered_twice() -> None:
    order = list(Phase)
    assert all(order.index(after) > order.index(before) for before in Phase for after in MOVES[before])


def test_every_phase_but_the_last_can_be_released_by_proof() -> None:
    for phase in Phase:
        released = phase is Phase.RELEASED
        assert (ReleasedBy.PROOF in RELEASES[phase]) is not released
        assert (Phase.RELEASED in MOVES[phase]) is not released


def test_phases_are_found_by_their_words() -> None:
    assert {Phase.HELD: 1}[Phase("held")] == 1
    assert hash(ReleasedBy.PROOF) == hash("proof")
