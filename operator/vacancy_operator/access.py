"""How to reach the API server: a kubeconfig, or the account of the pod. Both clients have it from here.

Invariant: what is read anew is read from the files, since a pod's token is replaced there every hour; a token
kept in memory ends in a 401 that no retry heals.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from kubernetes.aio import config as loader
from kubernetes.aio.client.configuration import Configuration

POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_NOWHERE = "no kubeconfig (--kubeconfig, $KUBECONFIG, ~/.kube/config), and no service account of a pod"


class AccessError(Exception):
    """There is no way to an API server; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Access:
    """Where credentials come from."""

    kubeconfig: Path | None
    """None: the pod's own account."""

    @classmethod
    def find(cls, kubeconfig: Path | None) -> Access:
        """First of: the kubeconfig that is named, that of KUBECONFIG, the pod's account, ~/.kube/config."""
        if kubeconfig is None and os.environ.get("KUBECONFIG"):
            kubeconfig = Path(os.environ["KUBECONFIG"])
        home = Path.home() / ".kube" / "config"
        if kubeconfig is None and "KUBERNETES_SERVICE_HOST" not in os.environ and home.exists():
            kubeconfig = home
        return cls(kubeconfig)

    async def configuration(self) -> Configuration:
        """Address and credentials as they are now.

        Raises:
            AccessError: They cannot be read.
        """
        made = Configuration()
        try:
            if self.kubeconfig is None:
                loader.load_incluster_config(client_configuration=made)  # type: ignore[no-untyped-call]  # untyped there
            else:
                path = str(self.kubeconfig)
                await loader.load_kube_config(path, client_configuration=made)  # type: ignore[no-untyped-call]  # untyped there
        except (loader.ConfigException, OSError, ValueError, TypeError, KeyError) as error:
            where = self.kubeconfig or _NOWHERE
            raise AccessError(f"no API server: {where}: {error}") from error
        return made

    def namespace(self) -> str:
        """The namespace that the credentials are for.

        Raises:
            AccessError: They cannot be read.
        """
        if self.kubeconfig is None:
            return POD_NAMESPACE.read_text().strip() if POD_NAMESPACE.exists() else "default"
        try:
            _, active = loader.list_kube_config_contexts(str(self.kubeconfig))  # type: ignore[no-untyped-call]  # untyped there
        except (loader.ConfigException, OSError, ValueError, TypeError, KeyError) as error:
            raise AccessError(f"no API server: {self.kubeconfig}: {error}") from error
        return str(active["context"].get("namespace") or "default")


def bearer(configuration: Configuration) -> str | None:
    """The token of a configuration, without the word before it."""
    words = str(configuration.api_key.get("BearerToken") or "").split()
    return words[-1] if words else None


def authority(configuration: Configuration) -> str:
    """Certificates of the API server's authority, PEM; empty: those of the system."""
    if configuration.ssl_ca_cert:
        return Path(configuration.ssl_ca_cert).read_text()
    data = configuration.ca_cert_data
    return data.decode() if isinstance(data, bytes) else data or ""
