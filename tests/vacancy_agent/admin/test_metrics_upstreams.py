"""No label of an upstream's metrics is a borrower's word; what they mean is in `test_metrics`."""

from __future__ import annotations

from standins.hosts import host, resource, upstream
from standins.running import StillAgent
from vacancy_agent.admin import metrics_upstreams
from vacancy_agent.core.job import Job


def test_a_borrower_chooses_no_label():
    agent = StillAgent(host((upstream("llm", ("gpu",)),), (resource("gpu"),)))
    job = agent.ledger.reserve("llm", agent.clock.now(), borrower="evil-borrower", model="evil-model")
    assert isinstance(job, Job)
    agent.ledger.hold(job.id, "the borrower left", agent.clock.now())
    values = {
        value for one in metrics_upstreams.families(agent) for labels, _ in one.samples for value in labels
    }
    assert "llm" in values
    assert not any("evil" in value for value in values)


def test_every_label_stays_within_the_configuration():
    agent = StillAgent(host((upstream("llm", ("gpu",)),), (resource("gpu"),)))
    agent.events("freed", upstream="gone", job=1, by="proof", why="")
    names = {labels[0] for one in metrics_upstreams.families(agent) for labels, _ in one.samples}
    assert names == {"llm"}
