from __future__ import annotations

from vacancy_agent.proxy.counters import AuthCounters, Outcome, UpstreamCounters
from vacancy_api.reasons import Reason


def test_every_outcome_is_there_from_the_start_so_that_a_scrape_shows_zeroes() -> None:
    assert UpstreamCounters().outcomes == dict.fromkeys(Outcome, 0)


def test_what_was_never_refused_reads_as_none() -> None:
    counters = UpstreamCounters()
    assert counters.refused[Reason.OWNER_ACTIVE] == 0
    counters.refused[Reason.OWNER_ACTIVE] += 1
    assert counters.refused == {Reason.OWNER_ACTIVE: 1}


def test_one_upstream_s_counts_are_not_another_s() -> None:
    first, second = UpstreamCounters(), UpstreamCounters()
    first.outcomes[Outcome.COMPLETED] += 1
    first.refused[Reason.RESOURCE_BUSY] += 1
    assert second.outcomes[Outcome.COMPLETED] == 0
    assert not second.refused


def test_decisions_about_tokens_are_counted_by_scope_the_allowed_ones_too() -> None:
    auth = AuthCounters()
    auth.allowed["borrow"] += 2
    auth.denied["read"] += 1
    assert (auth.allowed, auth.denied) == ({"borrow": 2}, {"read": 1})
