from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vacancy_operator.core.facts import Instant
from vacancy_operator.core.kinds import HostName
from vacancy_operator.workqueue import NEVER, WorkQueue

A, B = HostName("a"), HostName("b")


def at(seconds: float) -> Instant:
    return Instant(seconds)


def queue() -> WorkQueue:
    return WorkQueue(debounce=0.05, spacing=0.5, longest_backoff=8.0)


def test_two_thousand_events_in_a_second_are_three_decisions() -> None:
    work, decisions = queue(), 0
    for event in range(2000):
        now = at(event / 2000)
        work.add(A, now)
        if work.pop(now) is not None:
            decisions += 1
            work.done(A)
    decisions += work.pop(at(2.0)) is not None
    assert decisions == 3
    assert work.pop(at(9.0)) is None


def test_the_first_event_waits_for_others_and_the_next_for_the_spacing() -> None:
    work = queue()
    work.add(A, at(10.0))
    assert (work.pop(at(10.04)), work.next_due()) == (None, 10.05)
    assert work.pop(at(10.05)) == A
    work.done(A)
    work.add(A, at(10.1))
    assert work.next_due() == 10.55


def test_a_host_is_never_worked_on_twice_at_a_time_and_nothing_is_forgotten() -> None:
    work = queue()
    work.add(A, at(0.0))
    assert work.pop(at(1.0)) == A
    work.add(A, at(1.1))
    assert (work.pop(at(9.0)), work.next_due()) == (None, NEVER)
    work.done(A)
    assert work.pop(at(9.0)) == A


def test_one_host_that_flaps_does_not_keep_the_others_waiting() -> None:
    work = queue()
    work.add(A, at(0.0))
    work.pop(at(0.1))
    work.done(A)
    work.add(A, at(0.2))
    work.add(B, at(0.2))
    assert work.pop(at(0.3)) == B


def test_failures_are_tried_again_ever_later_up_to_a_bound() -> None:
    work, now, waits = queue(), at(0.0), []
    work.add(A, now)
    now = at(0.05)
    for _ in range(7):
        assert work.pop(now) == A
        due = work.failed(A, now)
        waits.append(due - now)
        now = due
    assert [round(wait, 6) for wait in waits] == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert work.pop(now) == A
    work.done(A)
    work.add(A, now)
    assert work.next_due() == now + 0.5


def test_news_and_a_recovery_cut_a_backoff_short() -> None:
    work = queue()
    for host in (A, B):
        work.add(host, at(0.0))
    for _ in range(5):
        now = at(max(work.next_due(), 0.0))
        while (host := work.pop(now)) is not None:
            work.failed(host, now)
    assert work.next_due() > now + 0.5
    work.add(A, now)
    assert work.next_due() == now + 0.5
    work.retry_now(now)
    assert work.next_due() == now + 0.05


def test_a_later_look_gives_way_to_an_event_and_not_to_a_later_one() -> None:
    work = queue()
    work.add_at(A, at(40.0))
    work.add_at(A, at(60.0))
    assert work.next_due() == 40.0
    work.add(A, at(1.0))
    assert work.pop(at(2.0)) == A
    work.done(A)
    assert work.next_due() == NEVER


def test_depth_is_what_waits_now() -> None:
    work = queue()
    work.add(A, at(0.0))
    work.add_at(B, at(40.0))
    assert (work.depth(at(0.0)), len(work)) == (1, 2)
    work.pop(at(1.0))
    assert work.depth(at(1.0)) == 0


def test_a_host_that_is_gone_leaves_nothing() -> None:
    work = queue()
    work.add(A, at(0.0))
    work.pop(at(1.0))
    work.forget(A)
    work.done(A)
    work.forget(A)
    assert work._hosts == {}


@given(st.lists(st.tuples(st.sampled_from(["add", "later", "pop", "done", "fail"]), st.floats(0.0, 1.0))))
def test_every_event_is_followed_by_a_decision(steps: list[tuple[str, float]]) -> None:
    work, now, busy, owed = queue(), 0.0, False, False
    for what, pause in steps:
        now += pause
        if what == "add":
            work.add(A, at(now))
            owed = True
        elif what == "later":
            work.add_at(A, at(now + 30))
        elif what == "pop" and (found := work.pop(at(now))) is not None:
            assert not busy
            busy, owed = found == A, False
        elif what in {"done", "fail"} and busy:
            if what == "done":
                work.done(A)
            else:
                work.failed(A, at(now))
            busy = False
    if busy:
        work.done(A)
    assert not owed or work.pop(at(now + 100)) == A
