from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
import yaml

from standins.operator_api import DictApi
from standins.operator_process import MANIFESTS, POLICY
from vacancy_operator.api import ApiError
from vacancy_operator.core.facts import Policy
from vacancy_operator.log import Trouble
from vacancy_operator.policy import ROOT, read_policy, refuses

if TYPE_CHECKING:
    from vacancy_operator.api import Api


def written() -> tuple[dict[str, Any], dict[str, Any]]:
    policy, binding = yaml.safe_load_all((MANIFESTS / "policy.yaml").read_text())
    return policy, binding


def test_the_policy_that_is_written_down_counts() -> None:
    assert refuses(*written(), POLICY)


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        (0, "failurePolicy", "Ignore"),
        (0, "validations", []),
        (1, "validationActions", ["Audit"]),
        (1, "policyName", "another"),
    ],
)
def test_one_that_refuses_nothing_does_not(part: int, key: str, value: object) -> None:
    both = written()
    both[part]["spec"][key] = value
    assert not refuses(*both, POLICY)


def test_a_missing_part_does_not() -> None:
    policy, binding = written()
    assert not refuses(None, binding, POLICY)
    assert not refuses(policy, None, POLICY)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, Policy.IN_FORCE),
        (ApiError(403, "no"), Policy.MISSING),
        (ApiError(None, "cut"), Policy.UNKNOWN),
        (ApiError(500, "x"), Policy.UNKNOWN),
    ],
)
async def test_what_cannot_be_read_is_not_known(error: ApiError | None, expected: Policy) -> None:
    api = DictApi()
    policy, binding = written()
    api.paths[f"{ROOT}/validatingadmissionpolicies/{POLICY}"] = policy
    api.paths[f"{ROOT}/validatingadmissionpolicybindings/{POLICY}"] = binding
    api.fail = lambda _: error
    assert await read_policy(cast("Api", api), POLICY, Trouble("policy")) is expected
