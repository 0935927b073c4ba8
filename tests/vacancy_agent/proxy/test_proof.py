from __future__ import annotations

import pytest

from vacancy_agent.proxy.counters import Outcome
from vacancy_agent.proxy.proof import held_because, outcome
from vacancy_http import Ending


@pytest.mark.parametrize("ending", list(Ending))
@pytest.mark.parametrize("missing", [False, True])
def test_a_request_of_which_nothing_was_sent_never_became_work(ending: Ending, missing: bool) -> None:
    assert held_because(ending, sent=False, marker_missing=missing) is None


@pytest.mark.parametrize("ending", list(Ending))
@pytest.mark.parametrize("missing", [False, True])
def test_only_a_whole_reply_with_its_marker_proves_the_end(ending: Ending, missing: bool) -> None:
    why = held_because(ending, sent=True, marker_missing=missing)
    assert (why is None) is (ending is Ending.COMPLETE and not missing)


def test_every_reason_to_hold_is_a_sentence_of_its_own() -> None:
    reasons = [held_because(ending, sent=True, marker_missing=True) for ending in Ending]
    assert all(why and why[0].islower() and not why.endswith(".") for why in reasons)
    assert len(set(reasons)) >= len(reasons) - 1  # what never reached the upstream is not held


@pytest.mark.parametrize("ending", list(Ending))
@pytest.mark.parametrize("missing", [False, True])
def test_a_success_is_a_whole_reply_or_a_tunnel_that_the_server_closed(ending: Ending, missing: bool) -> None:
    success = outcome(ending, marker_missing=missing) is Outcome.COMPLETED
    assert success is (ending is Ending.TUNNEL_ENDED or (ending is Ending.COMPLETE and not missing))


@pytest.mark.parametrize(
    ("ending", "counted"),
    [
        (Ending.CLIENT_GONE, Outcome.CLIENT_CLOSED),
        (Ending.CLIENT_STALLED, Outcome.CLIENT_CLOSED),
        (Ending.CANCELLED, Outcome.CANCELLED),
        (Ending.UPSTREAM_DIED, Outcome.FAILED),
        (Ending.UPSTREAM_UNREACHABLE, Outcome.FAILED),
    ],
)
@pytest.mark.parametrize("missing", [False, True])
def test_who_ended_it_is_told_apart(ending: Ending, counted: Outcome, missing: bool) -> None:
    assert outcome(ending, marker_missing=missing) is counted
