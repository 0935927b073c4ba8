from __future__ import annotations

import pytest
from pydantic import ValidationError

from vacancy_api.spec_access import AccessSpec, LimitsSpec, SecretKeyRef


@pytest.mark.parametrize(
    ("written", "expected"),
    [({}, 256), ({"maxRequestBodyMiB": 512}, 512), ({"maxBufferedBodyMiB": 100}, 100)],
)
def test_the_body_budget_follows_the_largest_body(written: dict[str, int], expected: int) -> None:
    assert LimitsSpec.model_validate(written).buffered_body_mib == expected


def test_a_secret_key_defaults_to_token() -> None:
    assert SecretKeyRef.model_validate({"name": "s"}).key == "token"


@pytest.mark.parametrize("port", [0, 65_536, True, "80", 80.0])
def test_ports(port: object) -> None:
    with pytest.raises(ValidationError):
        AccessSpec.model_validate({"apiPort": port})
