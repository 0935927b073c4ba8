"""Commitments are counted where they are told."""

from __future__ import annotations

from vacancy_agent.admin.events import Events


def test_every_event_is_passed_on_and_three_kinds_are_counted():
    told: list[tuple[str, dict[str, object]]] = []
    events = Events(lambda event, **facts: told.append((event, facts)))
    events("freed", upstream="a", job=1, by="proof", why="idle")
    events("freed", upstream="a", job=2, by="administrator", why="asked")
    events("reclaim", upstream="a", phase="waiting", edges=1)
    events("reclaimed", upstream="b", reason="UnloadNotConfirmed")
    events("held", upstream="a", job=3, why="gone")
    assert [event for event, _ in told] == ["freed", "freed", "reclaim", "reclaimed", "held"]
    assert events.freed == {("a", "proof"): 1, ("a", "administrator"): 1}
    assert events.reclaims == {("a", "waiting"): 1}
    assert events.unloads == {("b", "UnloadNotConfirmed"): 1}
