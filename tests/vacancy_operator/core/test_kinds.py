from __future__ import annotations

import pytest

from vacancy_operator.core.kinds import (
    CONFIG_MAP,
    KINDS,
    LEASE,
    LENDING_HOST,
    SECRET,
    Names,
    Ref,
    host_of,
    version,
)


@pytest.mark.parametrize("host", ["box", "a.b", "x-tokens", "x-config", "lh-x", "lh-x-join"])
def test_every_name_of_a_host_leads_back_to_it(host: str) -> None:
    assert {host_of(ref) for ref in Names.of(host).all} == {host}


@pytest.mark.parametrize(
    "ref",
    [
        Ref(SECRET, "lh-box"),
        Ref(SECRET, "lh--tokens"),
        Ref(SECRET, "other"),
        Ref(CONFIG_MAP, "lh-config"),
        Ref(LEASE, "lh-"),
        Ref(LEASE, "vacancy-operator"),
    ],
    ids=str,
)
def test_other_names_belong_to_no_host(ref: Ref) -> None:
    assert host_of(ref) is None


def test_a_host_belongs_to_itself() -> None:
    assert host_of(Ref(LENDING_HOST, "box")) == "box"


def test_no_two_hosts_share_a_name() -> None:
    hosts = ["x", "x-tokens", "x-join", "x-config", "x-tokens-tokens"]
    refs = [ref for host in hosts for ref in Names.of(host).all]
    assert len(refs) == len(set(refs))


def test_paths_of_the_kinds() -> None:
    roots = {kind.name: f"{kind.root} {kind.api_version}" for kind in KINDS}
    assert roots["Secret"] == "/api/v1 v1"
    assert roots["Lease"] == "/apis/coordination.k8s.io/v1 coordination.k8s.io/v1"


def test_a_version_that_cannot_be_read_is_the_oldest() -> None:
    assert [version({"metadata": {"resourceVersion": text}}) for text in ("12", "", "x")] == [12, 0, 0]
    assert version({}) == 0
