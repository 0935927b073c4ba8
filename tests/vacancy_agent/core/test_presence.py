from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vacancy_agent.core.facts import Evidence, Instant, Seconds
from vacancy_agent.core.presence import (
    OTHER_CLASSES,
    USER_CLASSES,
    Answers,
    HintWatch,
    LoginView,
    Questions,
    Session,
    judge,
    questions,
)
from vacancy_agent.core.settings import OwnerSettings

OWNER = OwnerSettings(idle_after=Seconds(600.0))
LISTED = replace(OWNER, processes=("steam",))

DESKTOP = Session(
    key="1",
    uid=1000,
    leader=500,
    cls="user",
    type="wayland",
    state="active",
    active=True,
    locked=False,
    remote=False,
    seat="seat0",
    vtnr=2,
    idle_for=None,
    ever_hinted=True,
)
IDLE = replace(DESKTOP, idle_for=Seconds(601.0))
CONSOLE = replace(DESKTOP, type="tty", key="2", leader=600)
GREETER = replace(DESKTOP, cls="greeter", key="g")
SSH = replace(CONSOLE, remote=True, seat="", vtnr=0, key="s")
PRESENT, ABSENT, UNCLEAR = Evidence.PRESENT, Evidence.ABSENT, Evidence.UNCLEAR


def evidence(*sessions: Session, inhibited: bool = False, owner: OwnerSettings = OWNER) -> Evidence:
    return judge(LoginView(sessions, idle_inhibited=inhibited), owner).evidence


@pytest.mark.parametrize(
    ("sessions", "expected"),
    [
        pytest.param([], ABSENT, id="nobody"),
        pytest.param([DESKTOP], PRESENT, id="a desktop in use"),
        pytest.param([replace(DESKTOP, locked=True)], ABSENT, id="a locked desktop"),
        pytest.param(
            [replace(DESKTOP, active=False)], ABSENT, id="a desktop behind another virtual terminal"
        ),
        pytest.param([replace(DESKTOP, active=False), GREETER], ABSENT, id="the login screen in front"),
        pytest.param([IDLE], ABSENT, id="idle for long enough"),
        pytest.param([replace(IDLE, idle_for=Seconds(599.0))], PRESENT, id="idle, not yet for long enough"),
        pytest.param([IDLE, replace(DESKTOP, key="2", uid=1001)], PRESENT, id="two desktops, one in use"),
        pytest.param([CONSOLE], PRESENT, id="a console login"),
        pytest.param([replace(CONSOLE, locked=True)], ABSENT, id="a locked console"),
        pytest.param(
            [replace(CONSOLE, idle_for=Seconds(9e9))], PRESENT, id="a terminal's access time means nothing"
        ),
        pytest.param([SSH], ABSENT, id="ssh"),
        pytest.param([replace(SSH, remote=False)], ABSENT, id="a container's or su's session without a seat"),
        pytest.param([replace(SSH, remote=False, vtnr=3)], PRESENT, id="a terminal without a seat"),
        pytest.param([replace(CONSOLE, type="unspecified")], PRESENT, id="unspecified at the machine"),
        pytest.param([replace(SSH, type="web")], ABSENT, id="a web console"),
        pytest.param([replace(DESKTOP, remote=True, seat="", vtnr=0)], PRESENT, id="a remote desktop"),
        pytest.param(
            [replace(DESKTOP, seat="", state="closing")], ABSENT, id="seatless, closing and still active"
        ),
        pytest.param([replace(DESKTOP, cls="novel")], PRESENT, id="an unknown class with a desktop"),
        pytest.param([replace(CONSOLE, cls="novel")], ABSENT, id="an unknown class without one"),
        pytest.param([replace(IDLE, type="holographic")], PRESENT, id="an unknown type is never idle"),
        pytest.param([replace(IDLE, type="x11")], ABSENT, id="an idle X desktop"),
    ],
)
def test_rules(sessions: list[Session], expected: Evidence) -> None:
    assert evidence(*sessions) is expected


@pytest.mark.parametrize("cls", sorted(USER_CLASSES))
def test_classes_of_users_count(cls: str) -> None:
    assert evidence(replace(DESKTOP, cls=cls)) is PRESENT


@pytest.mark.parametrize("cls", sorted(OTHER_CLASSES))
def test_other_classes_do_not(cls: str) -> None:
    assert evidence(replace(DESKTOP, cls=cls)) is ABSENT


def test_a_film_holds_the_machine() -> None:
    assert evidence(IDLE, inhibited=True) is PRESENT
    assert "inhibits" in judge(LoginView((IDLE,), idle_inhibited=True), OWNER).why
    assert evidence(replace(IDLE, locked=True), inhibited=True) is ABSENT


def test_a_listed_process_holds_an_idle_desktop() -> None:
    view = LoginView((IDLE,))
    assert questions(view, LISTED) == Questions(uids=frozenset({1000}))
    assert judge(view, LISTED, Answers(owners=frozenset({1000}))).evidence is PRESENT
    assert judge(view, LISTED, Answers(owners=frozenset({1001}))).evidence is ABSENT


def test_processes_that_cannot_be_asked_are_no_absent_owner() -> None:
    presence = judge(LoginView((IDLE,)), LISTED, Answers(failed="the processes cannot be read"))
    assert presence.evidence is UNCLEAR
    assert presence.why == "the processes cannot be read"


@pytest.mark.parametrize(
    ("sessions", "owner", "asked"),
    [
        pytest.param((DESKTOP, CONSOLE), LISTED, Questions(), id="a desktop in use settles it"),
        pytest.param((IDLE,), OWNER, Questions(), id="no list, nothing to look for"),
        pytest.param((replace(IDLE, locked=True),), LISTED, Questions(), id="nobody at an unlocked desktop"),
        pytest.param((CONSOLE,), OWNER, Questions(leaders=frozenset({600})), id="a console"),
        pytest.param((SSH,), LISTED, Questions(), id="nobody at the machine"),
    ],
)
def test_processes_are_asked_only_when_it_matters(
    sessions: tuple[Session, ...], owner: OwnerSettings, asked: Questions
) -> None:
    assert questions(LoginView(sessions), owner) == asked
    assert bool(questions(LoginView(sessions), owner)) is bool(asked.leaders or asked.uids)


def test_a_compositor_started_from_a_console_is_unclear() -> None:
    """Swaywm/swayidle#4: the hint is the terminal's access time while somebody plays below it."""
    console = replace(CONSOLE, idle_for=Seconds(7200.0))
    view = LoginView((console,))
    assert questions(view, OWNER) == Questions(leaders=frozenset({600}))
    presence = judge(view, OWNER, Answers(desktops=frozenset({600})))
    assert presence.evidence is UNCLEAR
    assert "console" in presence.why
    assert judge(LoginView((replace(console, locked=True),)), OWNER).evidence is ABSENT
    assert judge(LoginView(()), OWNER).evidence is ABSENT


def test_a_desktop_that_never_reports_idleness_refuses_and_is_reported_after_an_hour() -> None:
    """Plasma on Wayland leaves the hint unset for ever (languitar/autosuspend#302)."""
    plasma = replace(DESKTOP, ever_hinted=False)
    watch = HintWatch(longest_gap=Seconds(15.0))
    missing = {}
    for second in range(0, 12 * 3600, 3):
        missing[second] = watch.observe([plasma], Instant(float(second)))
        assert judge(LoginView((plasma,)), OWNER).evidence is PRESENT
    assert [second for second, is_missing in missing.items() if not is_missing][-1] == 3597
    assert all(missing[second] for second in range(3600, 12 * 3600, 3))
    locked = replace(plasma, locked=True)
    assert judge(LoginView((locked,)), OWNER).evidence is ABSENT


def test_a_hint_that_comes_at_last_ends_the_report() -> None:
    watch = HintWatch(longest_gap=Seconds(15.0))
    silent = replace(DESKTOP, ever_hinted=False)
    assert [watch.observe([silent], Instant(10.0 * n)) for n in range(400)][-1] is True
    assert watch.observe([DESKTOP], Instant(4000.0)) is False
    assert watch.observe([], Instant(4003.0)) is False


def test_an_hour_that_was_not_watched_does_not_count() -> None:
    watch = HintWatch(longest_gap=Seconds(15.0))
    silent = replace(DESKTOP, ever_hinted=False)
    assert not any(watch.observe([silent], Instant(28_800.0 * night)) for night in range(100))


def test_each_session_is_watched_by_itself() -> None:
    watch = HintWatch(longest_gap=Seconds(15.0))
    for n in range(359):
        assert (
            watch.observe([replace(DESKTOP, ever_hinted=False, key=str(n // 100))], Instant(10.0 * n))
            is False
        )


def test_consoles_owe_no_hint() -> None:
    watch = HintWatch(longest_gap=Seconds(15.0))
    console = replace(CONSOLE, ever_hinted=False)
    assert not any(watch.observe([console], Instant(10.0 * n)) for n in range(500))


SESSIONS = st.builds(
    Session,
    key=st.sampled_from("abc"),
    uid=st.integers(1000, 1002),
    leader=st.integers(500, 502),
    cls=st.sampled_from(["user", "user-light", "greeter", "manager", "novel"]),
    type=st.sampled_from(["tty", "x11", "wayland", "unspecified", "web", "novel"]),
    state=st.sampled_from(["active", "online", "closing"]),
    active=st.booleans(),
    locked=st.booleans(),
    remote=st.booleans(),
    seat=st.sampled_from(["", "seat0"]),
    vtnr=st.integers(0, 2),
    idle_for=st.none() | st.sampled_from([0.0, 599.0, 600.0, 1e6]),
    ever_hinted=st.booleans(),
)
SETS = st.frozensets(st.integers(500, 502)), st.frozensets(st.integers(1000, 1002))


@settings(max_examples=200)
@given(st.lists(SESSIONS, max_size=4), SESSIONS, st.booleans(), *SETS)
def test_one_more_session_never_makes_the_owner_less_there(
    sessions: list[Session], more: Session, inhibited: bool, desktops: frozenset[int], owners: frozenset[int]
) -> None:
    weight = {ABSENT: 0, UNCLEAR: 1, PRESENT: 2}
    answers = Answers(desktops, owners)
    fewer = judge(LoginView(tuple(sessions), idle_inhibited=inhibited), LISTED, answers)
    with_more = judge(LoginView((*sessions, more), idle_inhibited=inhibited), LISTED, answers)
    assert weight[with_more.evidence] >= weight[fewer.evidence]


@settings(max_examples=200)
@given(st.lists(SESSIONS, max_size=4), st.booleans(), *SETS)
def test_what_is_not_asked_does_not_matter(
    sessions: list[Session], inhibited: bool, desktops: frozenset[int], owners: frozenset[int]
) -> None:
    view = LoginView(tuple(sessions), idle_inhibited=inhibited)
    asked = questions(view, LISTED)
    answers = Answers(desktops & asked.leaders, owners & asked.uids)
    assert judge(view, LISTED, answers) == judge(view, LISTED, Answers(desktops, owners))
