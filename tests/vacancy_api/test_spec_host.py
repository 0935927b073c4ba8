from __future__ import annotations

import pytest
from pydantic import ValidationError

from vacancy_api.spec_host import EVERY_DAY, OwnerSpec, SamplingSpec, WindowSpec


def test_a_window_without_days_is_of_every_day() -> None:
    assert WindowSpec.model_validate({"from": "22:00", "to": "06:00"}).days == list(EVERY_DAY)


def test_one_windows_days_are_not_anothers() -> None:
    first, second = (WindowSpec.model_validate({"from": "22:00", "to": "06:00"}) for _ in range(2))
    assert first.days is not second.days


@pytest.mark.parametrize(
    ("field", "value"), [("idleAfter", "0s"), ("idleAfter", "25h"), ("releaseAfter", "1441m")]
)
def test_owner_times_are_bounded(field: str, value: str) -> None:
    with pytest.raises(ValidationError, match="must be between"):
        OwnerSpec.model_validate({field: value})


def test_sampling_is_bounded_on_both_sides() -> None:
    assert SamplingSpec.model_validate({"interval": "200ms", "pressureInterval": "1m"}).interval == "200ms"
    with pytest.raises(ValidationError, match="between 200ms and 60s"):
        SamplingSpec.model_validate({"interval": "100ms"})
