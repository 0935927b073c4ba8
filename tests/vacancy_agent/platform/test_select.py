from __future__ import annotations

import sys
from types import MappingProxyType

import pytest

from standins.clock import FakeClock
from vacancy_agent.core.settings import HostSettings, LendingSettings, OwnerSettings, SamplingSettings
from vacancy_agent.platform.presence import HEADLESS, UNREADABLE, UNSUPPORTED
from vacancy_agent.platform.select import presence_source


def settings(*, headless: bool) -> HostSettings:
    return HostSettings(
        lending=LendingSettings(),
        owner=OwnerSettings(headless=headless),
        sampling=SamplingSettings(),
        resources=MappingProxyType({}),
        upstreams=MappingProxyType({}),
    )


@pytest.mark.parametrize("platform", ["linux", "win32", "darwin"])
def test_headless_is_the_same_everywhere(platform: str) -> None:
    assert presence_source(settings(headless=True), FakeClock(), platform) is HEADLESS


def test_macos_has_no_backend_and_windows_refuses_until_it_has_one() -> None:
    assert presence_source(settings(headless=False), FakeClock(), "darwin") is UNSUPPORTED
    assert presence_source(settings(headless=False), FakeClock(), "win32") is UNREADABLE


@pytest.mark.skipif(sys.platform != "linux", reason="dbus-fast is installed on Linux only")
async def test_linux_asks_logind() -> None:
    from vacancy_agent.platform.linux.presence import LinuxPresence

    assert isinstance(presence_source(settings(headless=False), FakeClock(), "linux"), LinuxPresence)
