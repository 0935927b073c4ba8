from __future__ import annotations

from typing import get_args

from vacancy_agent.core import effects


def test_every_effect_names_its_upstream_first() -> None:
    """A runner can hand each one to the upstream it is for without looking inside."""
    for kind in get_args(effects.Effect):
        assert next(iter(kind.__dataclass_fields__)) == "upstream"
