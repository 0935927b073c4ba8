"""A real API server with our definitions in it, for tests marked `kube`.

VACANCY_TEST_KUBECONFIG names an existing cluster to use instead (as its administrator; the definitions are
applied, and each test makes a namespace). Tests that kill a control plane always use one of their own.
"""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kubes.places import find
from lab.kube_client import KubeClient
from lab.kube_lab import INSTALL_HINT, KubeLab, missing
from standins.require import require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CRDS = Path(__file__).resolve().parents[2] / "crds"


def require_kube() -> None:
    """Skip (or fail, in the complete run) where no control plane can be started."""
    lacking = missing()
    require(lacking is None, f"a Kubernetes control plane ({lacking})", INSTALL_HINT)


def apply_definitions(cluster: KubeClient) -> None:
    """Our resources are served when this returns."""
    definitions = [str(path) for path in sorted(CRDS.glob("*.yaml"))]
    files = [word for path in definitions for word in ("-f", path)]
    cluster.kubectl("apply", "--server-side", *files)
    # `kubectl wait` fails on a definition that has no condition at all yet.
    deadline = time.monotonic() + 30.0
    while not all(
        _is_served(cluster, path.stem.removeprefix("vacancy.dev_")) for path in CRDS.glob("*.yaml")
    ):
        assert time.monotonic() < deadline, "the definitions are not served"
        time.sleep(0.05)


def _is_served(cluster: KubeClient, plural: str) -> bool:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.vacancy.dev"
    found = (cluster.request("GET", path).body.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in found)


@pytest.fixture(scope="session")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeClient]:
    """One cluster for all tests of the session: each keeps to a namespace of its own."""
    named = os.environ.get("VACANCY_TEST_KUBECONFIG")
    if named:
        require(find("kubectl"), "kubectl", INSTALL_HINT)
        cluster = KubeClient(Path(named), tmp_path_factory.mktemp("kube"))
        apply_definitions(cluster)
        yield cluster
        return
    require_kube()
    with KubeLab() as lab:
        apply_definitions(lab)
        yield lab


@pytest.fixture
def kube_namespace(kube: KubeClient) -> str:
    """A namespace that no other test uses."""
    return kube.make_namespace(f"t-{secrets.token_hex(4)}")


@pytest.fixture
def own_kube() -> Iterator[KubeLab]:
    """A control plane for one test, to be killed and restarted; with the audit log and our definitions."""
    require_kube()
    with KubeLab(audit=True) as lab:
        apply_definitions(lab)
        yield lab


@pytest.fixture(scope="session")
def make_kube() -> Callable[..., KubeLab]:
    """`KubeLab` itself, where one can be started; the caller ends what it makes."""
    require_kube()
    return KubeLab
