from __future__ import annotations

import pytest
from pydantic import ValidationError

from vacancy_api.spec_resources import PressureSpec, ResourceSpec


def test_a_pressure_block_that_is_not_written_is_not_there() -> None:
    assert ResourceSpec.model_validate({"name": "g", "type": "nvidia"}).pressure is None
    written = ResourceSpec.model_validate({"name": "g", "type": "nvidia", "pressure": {}})
    assert written.pressure == PressureSpec()


@pytest.mark.parametrize(
    "wrong",
    [{"capPercent": 9}, {"capPercent": 101}, {"thresholdPercent": 0}, {"engageAfter": "11m"}, {"mode": "on"}],
)
def test_pressure_bounds(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PressureSpec.model_validate(wrong)
