from __future__ import annotations

from vacancy_api.reasons import HTTP_STATUS, Reason, http_status


def test_conditions_spell_a_reason_in_camel_case() -> None:
    assert Reason.UPSTREAM_NOT_ON_GPU.camel == "UpstreamNotOnGpu"


def test_what_is_not_listed_is_a_503() -> None:
    assert http_status(Reason.OWNER_ACTIVE) == 503
    assert {reason for reason in Reason if http_status(reason) != 503} == set(HTTP_STATUS)
