from __future__ import annotations

import pytest

from vacancy_agent.core.lending import By
from vacancy_agent.core.verdict import Refuse, sentence
from vacancy_api.reasons import Reason, http_status

ADMISSION = [
    Reason.LENDING_DISABLED,
    Reason.OWNER_ACTIVE,
    Reason.RESOURCE_DISABLED,
    Reason.RESOURCE_UNMEASURED,
    Reason.INSUFFICIENT_CAPACITY,
    Reason.RESOURCE_PRESSURED,
    Reason.UPSTREAM_NOT_ON_GPU,
    Reason.RESOURCE_BUSY,
]


@pytest.mark.parametrize("reason", ADMISSION)
def test_every_refusal_of_admission_has_words_and_is_a_503(reason: Reason) -> None:
    assert sentence(Refuse(reason, 1))
    assert http_status(reason) == 503


@pytest.mark.parametrize("by", By)
def test_lending_that_is_off_says_by_what(by: By) -> None:
    plain = sentence(Refuse(Reason.LENDING_DISABLED, 1))
    assert sentence(Refuse(Reason.LENDING_DISABLED, 1, {"by": by.value})) != plain


def test_a_detail_cannot_be_written_to_by_accident() -> None:
    with pytest.raises(TypeError):
        Refuse(Reason.OWNER_ACTIVE, 5).detail["who"] = "somebody"  # type: ignore[index]
