"""What the process table adds to the login sessions: desktops started from a console, and the owner's list.

Invariant: what cannot be seen is not taken for absent. In a container without the host's process ids not one
process of the user at the desktop is visible; that is no answer, because a session always has some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil

from vacancy_agent.core.facts import Seconds
from vacancy_agent.core.presence import Answers, Questions
from vacancy_agent.platform.threads import Aside, StuckError

if TYPE_CHECKING:
    from collections.abc import Iterable

DEADLINE = Seconds(2.0)
DESKTOPS = frozenset(
    {
        *("sway", "hyprland", "river", "labwc", "wayfire", "weston", "cage", "niri", "dwl", "hikari", "phoc"),
        *(
            "kwin_wayland",
            "gnome-shell",
            "mutter",
            "cosmic-comp",
            "gamescope",
            "miracle-wm",
            "qtile",
            "mango",
        ),
        *("xorg", "x", "xwayland", "xinit", "startx"),
    }
)
"""Programs that draw a desktop, in lower case."""


class ProcessTable:
    """Answers questions about processes, beside the loop: a large table takes tens of milliseconds."""

    def __init__(self, listed: Iterable[str], *, deadline: Seconds = DEADLINE) -> None:
        """`listed`: names of processes that keep a desktop in use; case does not matter."""
        self._listed = frozenset(name.casefold() for name in listed)
        self._deadline = deadline
        self._aside: Aside[Answers] = Aside("processes")

    async def ask(self, questions: Questions) -> Answers:
        """Answer as far as the table can be read; never raises."""
        try:
            return await self._aside.run(lambda: answer(questions, self._listed), self._deadline)
        except (TimeoutError, StuckError, OSError, psutil.Error):
            return Answers(failed="the processes of this machine cannot be read")


def answer(questions: Questions, listed: frozenset[str]) -> Answers:
    """Read the table once, and answer from it.

    Raises:
        OSError: it cannot be read.
    """
    desktops = frozenset(leader for leader in questions.leaders if _runs_desktop(leader))
    if not questions.uids or not listed:
        return Answers(desktops)
    seen: dict[int, set[str]] = {}
    for process in psutil.process_iter(["uids", "name"]):
        uids, name = process.info["uids"], process.info["name"]
        if uids is not None and uids.real in questions.uids:
            seen.setdefault(uids.real, set()).add((name or "").casefold())
    if set(seen) != questions.uids:
        return Answers(desktops, failed="the processes of who is at the desktop cannot be seen from here")
    return Answers(desktops, frozenset(uid for uid, names in seen.items() if names & listed))


def _runs_desktop(leader: int) -> bool:
    """Whether a desktop is the leader or below it; a leader that is gone, or not visible, has none."""
    try:
        first = psutil.Process(leader)
        return any(_name(process) in DESKTOPS for process in (first, *first.children(recursive=True)))
    except psutil.Error:
        return False


def _name(process: psutil.Process) -> str:
    try:
        return process.name().casefold()
    except psutil.Error:  # it ended meanwhile
        return ""
