"""What a test does about a real part that this machine lacks: it says so; the complete run makes it fail."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


def require(condition: object, what: str, install_hint: str) -> None:
    """Go on when `condition` holds; else skip with what is missing, or fail when `VACANCY_REQUIRE=all`."""
    if condition:
        return
    give_up: Callable[[str], None] = (
        pytest.fail if os.environ.get("VACANCY_REQUIRE") == "all" else pytest.skip
    )
    give_up(f"missing: {what}; install: {install_hint}")
