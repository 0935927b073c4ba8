"""A real Kubernetes control plane for tests and by hand: etcd and API server, with RBAC, in a few seconds.

    with KubeLab(audit=True) as lab:
        lab.kubectl("apply", "-f", "crds/")                  # as administrator
        lab.kubeconfig                                       # path, administrator
        agent = lab.account_kubeconfig("lending", "lh-x")    # path, a ServiceAccount's token
        lab.api.kill(); lab.api.start()                      # etcd likewise; data and port stay
        lab.api.freeze(); lab.api.thaw()
        lab.audit.counts()                                   # who did what how often

No controller manager: owner references are kept and not acted upon, a namespace is not emptied when deleted.
Blocking; tests on a loop use `asyncio.to_thread` where it matters.
"""

from __future__ import annotations

import json
import shutil
import socket
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Self

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kubes.places import CONTROL_PLANE, find
from kubes.places import missing as missing_programs
from lab.kube_audit import POLICY, AuditLog
from lab.kube_client import Answer, KubeClient
from lab.kube_part import Part
from lab.kube_pki import Authority, key_pem, new_key, public_pem, write_kubeconfig

__all__ = ["INSTALL_HINT", "Answer", "KubeLab", "missing"]

INSTALL_HINT = "hack/kube build (needs about 4 minutes, once), or set KUBEBUILDER_ASSETS"
SERVICE_RANGE = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"
ISSUER = "https://kubernetes.default.svc.cluster.local"


def missing() -> str | None:
    """What keeps the lab from running on this machine, or None."""
    return missing_programs(CONTROL_PLANE)


class KubeLab(KubeClient):
    """One control plane in a directory of its own. `server` is the API server's URL."""

    def __init__(
        self,
        *,
        audit: bool = False,
        folder: Path | None = None,
        detached: bool = False,
        flags: tuple[str, ...] = (),
    ) -> None:
        """Prepare; nothing runs yet.

        Args:
            audit: write the audit log (`lab.audit`).
            folder: where everything is kept, else a temporary directory that is removed by `stop`.
            detached: the processes outlive this one.
            flags: further flags of the API server.
        """
        lacking = missing()
        assert lacking is None, lacking
        self._temporary = folder is None
        place = folder or Path(tempfile.mkdtemp(prefix="kube-lab-"))
        self.port, self._etcd_port, self._peer_port = _free_ports(3)
        self._authority = Authority()
        super().__init__(self._write_files(place, audit=audit), place)
        self.audit = AuditLog(self.folder / "audit.log")
        extra = (*(self._audit_flags() if audit else ()), *flags)
        self.etcd = Part(
            "etcd", self._etcd_argv(), self.folder / "etcd.log", self._etcd_ready, detached=detached
        )
        self.api = Part(
            "kube-apiserver",
            self._api_argv(extra),
            self.folder / "api.log",
            self._api_ready,
            detached=detached,
        )

    @property
    def ca_file(self) -> Path:
        """Certificate of the authority, PEM."""
        return self.folder / "ca.crt"

    def start(self) -> None:
        """Start both at once; the API server waits for its store."""
        try:
            self.etcd.launch()
            self.api.launch()
            self.etcd.wait_ready()
            self.api.wait_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything and remove what was written; safe to call twice."""
        self.api.kill()
        self.etcd.kill()
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _write_files(self, place: Path, *, audit: bool) -> Path:
        """Returns the administrator's kubeconfig."""
        place.mkdir(parents=True, exist_ok=True)
        names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"]
        serving = self._authority.server(names, ["127.0.0.1", "::1", SERVICE_ADDRESS])
        admin = self._authority.client("admin", ["system:masters"])
        accounts = new_key()
        contents = {
            "ca.crt": self._authority.pem,
            "api.crt": serving.certificate,
            "api.key": serving.key,
            "accounts.key": key_pem(accounts),
            "accounts.pub": public_pem(accounts),
            **({"audit-policy.json": json.dumps(POLICY).encode()} if audit else {}),
        }
        for name, content in contents.items():
            path = place / name
            path.touch(mode=0o600)
            path.write_bytes(content)
        return write_kubeconfig(
            place / "admin.kubeconfig",
            server=f"https://127.0.0.1:{self.port}",
            authority=self._authority.pem,
            client=admin,
        )

    def _etcd_argv(self) -> list[str]:
        client, peer = (f"http://127.0.0.1:{port}" for port in (self._etcd_port, self._peer_port))
        return [
            str(find("etcd")),
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",  # a test's data need not survive the machine
            "--log-level=warn",
        ]

    def _api_argv(self, extra: tuple[str, ...]) -> list[str]:
        return [
            str(find("kube-apiserver")),
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # it would write an Endpoints object with 127.0.0.1: refused
            f"--secure-port={self.port}",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            f"--tls-cert-file={self.folder / 'api.crt'}",
            f"--tls-private-key-file={self.folder / 'api.key'}",
            f"--client-ca-file={self.ca_file}",
            f"--service-account-key-file={self.folder / 'accounts.pub'}",
            f"--service-account-signing-key-file={self.folder / 'accounts.key'}",
            f"--service-account-issuer={ISSUER}",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            *extra,
        ]

    def _audit_flags(self) -> tuple[str, ...]:
        policy = self.folder / "audit-policy.json"
        return (
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self.audit.path}",
            "--audit-log-maxsize=1000",
        )

    def _etcd_ready(self) -> bool:
        url = f"http://127.0.0.1:{self._etcd_port}/health"
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    def _api_ready(self) -> bool:
        try:
            return self.request("GET", "/readyz").status == 200
        except OSError:
            return False


def _free_ports(count: int) -> list[int]:
    """Ports that nobody has now; taken together, so that no two are the same."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
