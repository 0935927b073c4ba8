from __future__ import annotations

from pathlib import Path

import pytest

from vacancy_operator.access import Access, AccessError, authority, bearer

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
clusters:
- {name: c, cluster: {server: "https://10.0.0.1:6443", insecure-skip-tls-verify: true}}
users:
- {name: u, user: {token: abc}}
contexts:
- {name: here, context: {cluster: c, user: u, namespace: lending}}
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    return path


async def test_a_kubeconfig_is_read(kubeconfig: Path) -> None:
    access = Access(kubeconfig)
    found = await access.configuration()
    assert (found.host, bearer(found), found.verify_ssl) == ("https://10.0.0.1:6443", "abc", False)
    assert access.namespace() == "lending"
    assert authority(found) == ""


async def test_a_changed_token_is_seen(kubeconfig: Path) -> None:
    access = Access(kubeconfig)
    await access.configuration()
    kubeconfig.write_text(KUBECONFIG.replace("abc", "def"))
    assert bearer(await access.configuration()) == "def"


async def test_without_any_there_is_a_reason(tmp_path: Path) -> None:
    access = Access(tmp_path / "none")
    with pytest.raises(AccessError, match="no API server"):
        await access.configuration()
    with pytest.raises(AccessError, match="no API server"):
        access.namespace()


async def test_outside_a_pod_its_account_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(AccessError, match=r"--kubeconfig.*service account"):
        await Access(None).configuration()


def test_the_order_in_which_credentials_are_looked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert Access.find(None).kubeconfig is None
    home = tmp_path / ".kube" / "config"
    home.parent.mkdir()
    home.touch()
    assert Access.find(None).kubeconfig == home
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    assert Access.find(None).kubeconfig is None
    monkeypatch.setenv("KUBECONFIG", "named-by-environment")
    assert Access.find(None).kubeconfig == Path("named-by-environment")
    assert Access.find(Path("named")).kubeconfig == Path("named")
