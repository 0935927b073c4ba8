from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vacancy_agent.platform.linux.gpu_power import is_suspended

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("status", "suspended"),
    [("suspended\n", True), ("active\n", False), ("unsupported\n", False), (None, False)],
)
def test_power_of_a_device(tmp_path: Path, status: str | None, suspended: bool) -> None:
    power = tmp_path / "0000:01:00.0" / "power"
    power.mkdir(parents=True)
    if status is not None:
        (power / "runtime_status").write_text(status)
    assert is_suspended("0000:01:00.0", tmp_path) is suspended
    assert is_suspended("0000:02:00.0", tmp_path) is False
