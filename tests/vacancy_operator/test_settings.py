from __future__ import annotations

from vacancy_operator.settings import Settings


def test_the_defaults_go_together() -> None:
    found = Settings(namespace="lending")
    assert found.watch_silence > 62, "bookmarks come every 60 s"
    assert found.healthy_for > found.list_every
    assert found.lease_renew * 2 < found.lease_duration
    assert found.contact_gap >= found.lease_duration
