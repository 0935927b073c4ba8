"""Whether the owner is at the machine, judged from the login sessions of systemd-logind.

Invariant: a session that cannot be read clearly never counts as an absent owner. Idleness is believed only
where a desktop reports it itself; the rejected option, the access time of a terminal, calls somebody absent
who has been playing under a compositor that was started from that terminal.

The rules, numbered as in the code:

1. Sessions of users count unless they are closing; of a class not known here, those with a desktop.
2. Desktops (x11, wayland, mir) count wherever they are: remote desktops have no seat.
3. Consoles count only at the machine: not remote, and with a seat or a virtual terminal.
4. A session is at the desktop when it is active and not locked.
5. It is idle when its desktop says so, for long enough. What logind says of a console is its terminal's
   access time, which means nothing.
6. While something inhibits idling (a film), nobody is idle.
7. A process from the owner's list keeps an idle desktop in use.
8. A desktop that was started from a console is unclear: its owner may be there or not, and no hint will tell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Evidence, Instant, Presence, Seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vacancy_agent.core.settings import OwnerSettings

USER_CLASSES = frozenset({"user", "user-early", "user-light", "user-early-light"})
OTHER_CLASSES = frozenset(
    {
        "user-incomplete",
        "greeter",
        "lock-screen",
        "background",
        "background-light",
        "manager",
        "manager-early",
        "none",
    }
)
DESKTOP_TYPES = frozenset({"x11", "wayland", "mir"})
CONSOLE_TYPES = frozenset({"tty", "unspecified", "web"})

HINT_PATIENCE = Seconds(3600.0)
"""How long a desktop may be watched without an idle hint before its silence is reported."""


@dataclass(frozen=True, slots=True)
class Session:
    """One login session as logind shows it."""

    key: str
    """Names the session as long as it lives; says nothing about whose it is."""
    uid: int
    leader: int
    """Process id of the session's first process."""
    cls: str
    type: str
    state: str
    active: bool
    locked: bool
    remote: bool
    seat: str
    vtnr: int
    idle_for: Seconds | None
    """How long its idle hint has been set; None while it is not."""
    ever_hinted: bool
    """The idle hint was set at least once since the session began."""


@dataclass(frozen=True, slots=True)
class LoginView:
    """Everything one read of logind shows."""

    sessions: tuple[Session, ...]
    idle_inhibited: bool = False
    sleeping: bool = False
    """Suspend is being prepared, or has not ended yet."""


@dataclass(frozen=True, slots=True)
class Questions:
    """What the processes must be asked before the view can be judged; both empty: nothing."""

    leaders: frozenset[int] = frozenset()
    """Does a desktop run below this process?"""
    uids: frozenset[int] = frozenset()
    """Does this user run a process from the owner's list?"""

    def __bool__(self) -> bool:
        return bool(self.leaders or self.uids)


@dataclass(frozen=True, slots=True)
class Answers:
    """What the processes said."""

    desktops: frozenset[int] = frozenset()
    """The leaders below which a desktop runs."""
    owners: frozenset[int] = frozenset()
    """The users who run a listed process."""
    failed: str | None = None
    """They could not be asked, and why."""


NO_ANSWERS = Answers()


def questions(view: LoginView, owner: OwnerSettings) -> Questions:
    """What to ask before `judge`: nothing when a desktop in use settles it, so that a return is quick."""
    there = _at_desktop(view)
    if any(_is_desktop(session) and not _is_idle(session, view, owner) for session in there):
        return Questions()
    consoles = frozenset(session.leader for session in there if not _is_desktop(session))
    uids = frozenset(session.uid for session in there) if owner.processes else frozenset[int]()
    return Questions(consoles, uids)


def judge(view: LoginView, owner: OwnerSettings, answers: Answers = NO_ANSWERS) -> Presence:
    """Say whether the owner is there; `why` is for people and names nobody."""
    there = _at_desktop(view)
    desktops = [session for session in there if _is_desktop(session)]
    consoles = [session for session in there if not _is_desktop(session)]
    # 5. and 6.
    if any(not _is_idle(session, view, owner) for session in desktops):
        inhibited = view.idle_inhibited and all(_long_idle(session, owner) for session in desktops)
        return Presence(Evidence.PRESENT, _INHIBITED if inhibited else "a desktop is in use")
    # 7.
    if any(session.uid in answers.owners for session in there):
        return Presence(Evidence.PRESENT, "a process from the owner's list runs")
    # 3. A console without a desktop below it: somebody is logged in at the machine.
    if any(session.leader not in answers.desktops for session in consoles):
        return Presence(Evidence.PRESENT, "somebody is logged in at the console")
    # 8.
    if consoles:
        return Presence(Evidence.UNCLEAR, _FROM_CONSOLE)
    if answers.failed is not None:
        return Presence(Evidence.UNCLEAR, answers.failed)
    return Presence(Evidence.ABSENT, _why_absent(view, desktops))


_INHIBITED = "a desktop is idle, but something inhibits idling"
_FROM_CONSOLE = (
    "a desktop that was started from a console does not report when it is idle; lock it or log out to lend"
)


def _why_absent(view: LoginView, desktops: list[Session]) -> str:
    if desktops:
        return "the desktop has been idle for long enough"
    if any(session.locked and _counts(session) for session in view.sessions):
        return "the desktop is locked"
    return "nobody is logged in at the machine"


def _at_desktop(view: LoginView) -> list[Session]:
    # 4.
    return [s for s in view.sessions if _counts(s) and s.active and not s.locked]


def _counts(session: Session) -> bool:
    # 1.
    if session.state == "closing" or session.cls in OTHER_CLASSES:
        return False
    # 2. A type not known here counts as well: better a refusal than an owner overlooked.
    if session.type not in CONSOLE_TYPES:
        return session.cls in USER_CLASSES or session.type in DESKTOP_TYPES
    # 3.
    return session.cls in USER_CLASSES and not session.remote and bool(session.seat or session.vtnr)


def _is_desktop(session: Session) -> bool:
    return session.type not in CONSOLE_TYPES


def _is_idle(session: Session, view: LoginView, owner: OwnerSettings) -> bool:
    # 6.
    return not view.idle_inhibited and _long_idle(session, owner)


def _long_idle(session: Session, owner: OwnerSettings) -> bool:
    # 5.
    hinted = session.type in DESKTOP_TYPES and session.idle_for is not None
    return hinted and (session.idle_for or 0.0) >= owner.idle_after


@dataclass(slots=True)
class HintWatch:
    """Notices desktops that never report idleness: their owners wonder why nothing is ever lent.

    Only time that was watched counts: a gap between two looks is worth at most `longest_gap`.
    """

    longest_gap: Seconds
    _watched: dict[str, float] = field(default_factory=dict)
    _last: Instant | None = None

    def observe(self, sessions: Iterable[Session], now: Instant) -> bool:
        """Take a look; True when a desktop was watched for an hour and has never set its idle hint."""
        step = 0.0 if self._last is None else min(now - self._last, self.longest_gap)
        self._last = now
        silent = [s.key for s in sessions if _counts(s) and _is_desktop(s) and not s.ever_hinted]
        self._watched = {key: self._watched[key] + step if key in self._watched else 0.0 for key in silent}
        return any(watched >= HINT_PATIENCE for watched in self._watched.values())
