from __future__ import annotations

from vacancy_operator.metrics import Metrics


def test_writes_are_counted_by_kind() -> None:
    metrics = Metrics()
    metrics.wrote("Secret", "apply")
    metrics.wrote("Secret", "apply")
    assert b'vacancy_operator_api_writes_total{kind="Secret",verb="apply"} 2.0' in metrics.text()


def test_two_operators_in_one_process_do_not_share_figures() -> None:
    one, other = Metrics(), Metrics()
    one.hosts.set(3)
    assert b"vacancy_operator_hosts 0.0" in other.text()
