"""The control plane for tests behaves as one: accounts, roles, restarts, and a count of what it was asked."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from lab.kube_audit import Count
from lab.kube_client import KubeClient
from lab.kube_part import PartError

if TYPE_CHECKING:
    from lab.kube_lab import KubeLab

pytestmark = pytest.mark.kube
REVOKED_S = 60.0
"""The API server remembers a good token for 10 s."""
SECRETS = "/api/v1/namespaces/lending/secrets"


def secret(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "stringData": {"token": "x"}}


def test_an_account_may_do_nothing_until_a_role_says_so(kube: KubeClient, kube_namespace: str) -> None:
    theirs = kube.account_kubeconfig(kube_namespace, "agent")
    seen = kube.kubectl("get", "lendinghosts", "-n", kube_namespace, kubeconfig=theirs, check=False)
    assert f"system:serviceaccount:{kube_namespace}:agent" in seen.stderr
    assert "cannot list resource" in seen.stderr
    kube.kubectl("create", "role", "see", "-n", kube_namespace, "--verb=list", "--resource=lendinghosts")
    account = f"--serviceaccount={kube_namespace}:agent"
    kube.kubectl("create", "rolebinding", "see", "-n", kube_namespace, "--role=see", account)
    seen = kube.kubectl("get", "lendinghosts", "-n", kube_namespace, kubeconfig=theirs)
    assert "No resources found" in seen.stderr


def test_a_token_bound_to_a_secret_ends_with_it(kube: KubeClient, kube_namespace: str) -> None:
    secrets = f"/api/v1/namespaces/{kube_namespace}/secrets"
    assert kube.request("POST", secrets, secret("join")).status == 201
    token = kube.account_token(kube_namespace, "agent", secret="join")
    assert kube.request("GET", secrets, token=token).status == 403  # known, and not allowed
    assert kube.request("DELETE", f"{secrets}/join").status == 200
    end = time.monotonic() + REVOKED_S
    while kube.request("GET", secrets, token=token).status != 401:
        assert time.monotonic() < end, "the token is still known"
        time.sleep(0.3)


def test_a_kubeconfig_that_names_files_opens_the_same_cluster(own_kube: KubeLab) -> None:
    through = KubeClient(own_kube.kubeconfig, own_kube.folder)
    assert through.server == own_kube.server
    assert through.request("GET", "/version").body["gitVersion"].startswith("v1.")


def test_data_and_tokens_outlive_the_processes(own_kube: KubeLab) -> None:
    own_kube.make_namespace("lending")
    token = own_kube.account_token("lending", "agent")
    assert own_kube.request("POST", SECRETS, secret("kept")).status == 201
    own_kube.api.kill()
    assert not own_kube.api.running
    with pytest.raises(OSError, match="refused"):
        own_kube.request("GET", "/version")
    own_kube.etcd.kill()
    own_kube.etcd.start()
    own_kube.api.start()
    assert own_kube.request("GET", f"{SECRETS}/kept").status == 200
    assert own_kube.request("GET", SECRETS, token=token).status == 403


def test_a_frozen_server_answers_when_it_thaws(own_kube: KubeLab) -> None:
    own_kube.api.freeze()
    answered = own_kube.kubectl("get", "ns", "--request-timeout=1s", check=False)
    own_kube.api.thaw()
    assert answered.returncode != 0
    assert own_kube.request("GET", "/readyz").status == 200


def test_requests_are_counted_by_who_did_what(own_kube: KubeLab) -> None:
    own_kube.make_namespace("lending")
    token = own_kube.account_token("lending", "agent")
    mark = own_kube.audit.here()
    for _ in range(3):
        own_kube.request("GET", SECRETS, token=token)
    own_kube.request("POST", SECRETS, secret("one"))
    user = "system:serviceaccount:lending:agent"
    assert own_kube.audit.counts(mark)[Count(user, "list", "secrets")] == 3
    assert own_kube.audit.counts(mark, writes_only=True)[Count("admin", "create", "secrets")] == 1
    assert Count(user, "list", "secrets") not in own_kube.audit.counts(mark, writes_only=True)
    codes = {asked.code for asked in own_kube.audit.requests(mark) if asked.user == user}
    assert codes == {403}


def test_a_part_that_ends_says_why(own_kube: KubeLab) -> None:
    own_kube.api.kill()
    own_kube.api.argv.append("--no-such-flag")
    with pytest.raises(PartError, match="unknown flag: --no-such-flag"):
        own_kube.api.start()
