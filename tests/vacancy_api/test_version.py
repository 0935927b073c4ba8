from __future__ import annotations

import tomllib
from pathlib import Path

from vacancy_api.version import VERSION


def test_it_is_the_distributions() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
