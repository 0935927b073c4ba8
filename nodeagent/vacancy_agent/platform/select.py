"""Which presence backend this machine has."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from vacancy_agent.platform.presence import HEADLESS, UNREADABLE, UNSUPPORTED, PresenceSource

if TYPE_CHECKING:
    from vacancy_agent.clock import Clock
    from vacancy_agent.core.settings import HostSettings


def presence_source(settings: HostSettings, clock: Clock, platform: str = sys.platform) -> PresenceSource:
    """The backend for `platform` (as `sys.platform` names it); a headless host needs none anywhere."""
    if settings.owner.headless:
        return HEADLESS
    if platform == "darwin":
        return UNSUPPORTED
    if platform == "linux":
        return _linux(settings, clock)
    return UNREADABLE


def _linux(settings: HostSettings, clock: Clock) -> PresenceSource:
    # Imported here: dbus-fast is installed on Linux only.
    from vacancy_agent.platform.linux.logind import Logind  # noqa: PLC0415 - as above
    from vacancy_agent.platform.linux.presence import LinuxPresence  # noqa: PLC0415 - as above
    from vacancy_agent.platform.linux.processes import ProcessTable  # noqa: PLC0415 - as above

    processes = ProcessTable(settings.owner.processes)
    return LinuxPresence(settings.owner, Logind(clock), processes, clock, settings.sampling.stale_after)
