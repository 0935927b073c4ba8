from __future__ import annotations

from vacancy_agent.store.boot import boot_id


def test_is_stable_and_fits_its_field():
    assert boot_id() == boot_id()
    assert 0 < len(boot_id().encode()) <= 44
