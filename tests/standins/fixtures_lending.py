"""A lending host in driven time, whose books must agree when the test is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from standins import agreement
from standins.lending_rig import LendingRig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from vacancy_agent.core.settings import HostSettings


@pytest.fixture
def lending(tmp_path: Path) -> Iterator[Callable[..., LendingRig]]:
    """Make a host, by default with one upstream of dialect openai."""
    made: list[LendingRig] = []

    def make(settings: HostSettings | None = None, **more: Any) -> LendingRig:
        made.append(LendingRig(tmp_path / str(len(made)), settings, **more))
        return made[-1]

    yield make
    for rig in made:
        agreement.check(rig.host, rig.journal, rig.reclaims)
        rig.tidy()


@pytest.fixture
def rig(lending: Callable[..., LendingRig]) -> LendingRig:
    return lending()
