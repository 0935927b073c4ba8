"""A cluster as its administrator sees it, through any kubeconfig: kubectl, requests, tokens of accounts."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kubes.places import find
from lab.kube_pki import write_kubeconfig

REQUEST_TIMEOUT_S = 30.0
KUBECTL_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the API server; `body` is its JSON, or text where it is none."""

    status: int
    body: Any


class KubeClient:
    """What a kubeconfig opens. `server` is the API server's URL, `folder` takes what is written."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        """Read the current context of `kubeconfig`."""
        self.kubeconfig = kubeconfig
        self.folder = folder
        cluster, user = _current(yaml.safe_load(kubeconfig.read_text(encoding="utf-8")))
        self.server: str = cluster["server"]
        self.authority = _material(cluster, "certificate-authority")
        self._token: str | None = user.get("token")
        self._trust = ssl.create_default_context(cadata=self.authority.decode())
        self._own = ssl.create_default_context(cadata=self.authority.decode())
        if "client-certificate-data" in user or "client-certificate" in user:
            pair = folder / "client.pem"
            pair.touch(mode=0o600)
            pair.write_bytes(
                _material(user, "client-certificate") + b"\n" + _material(user, "client-key") + b"\n"
            )
            self._own.load_cert_chain(pair)

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl, as the administrator unless another kubeconfig is given."""
        argv = [str(find("kubectl")), "--kubeconfig", str(kubeconfig or self.kubeconfig), *arguments]
        argv += ["--cache-dir", str(self.folder / "kubectl-cache")]
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, check=False, timeout=KUBECTL_TIMEOUT_S
        )
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr or done.stdout}")
        return done

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        token: str | None = None,
    ) -> Answer:
        """One request, as the administrator unless a token is given. Refusals are answers, not errors.

        Raises:
            OSError: Nobody answers.
        """
        data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        bearer = token or self._token
        headers = {"Content-Type": content_type, **({"Authorization": f"Bearer {bearer}"} if bearer else {})}
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        trust = self._trust if token else self._own
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S, context=trust) as reply:
                return Answer(reply.status, _decoded(reply.read()))
        except urllib.error.HTTPError as refusal:
            with refusal:
                return Answer(refusal.code, _decoded(refusal.read()))

    def make_namespace(self, name: str) -> str:
        """A namespace, if it is not there."""
        answer = self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        assert answer.status in {201, 409}, answer
        return name

    def account_token(
        self, namespace: str, name: str, *, seconds: int = 3600, secret: str | None = None
    ) -> str:
        """A token of a ServiceAccount (made where there is none), bound to a Secret if one is named."""
        accounts = f"/api/v1/namespaces/{self.make_namespace(namespace)}/serviceaccounts"
        self.request("POST", accounts, {"metadata": {"name": name}})
        bound = {"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": secret}} if secret else {}
        wish = {"spec": {"expirationSeconds": seconds, **bound}}
        answer = self.request("POST", f"{accounts}/{name}/token", wish)
        assert answer.status == 201, answer
        return str(answer.body["status"]["token"])

    def account_kubeconfig(self, namespace: str, name: str, *, seconds: int = 3600) -> Path:
        """Kubeconfig with a token of a ServiceAccount."""
        token = self.account_token(namespace, name, seconds=seconds)
        return self.token_kubeconfig(f"{namespace}-{name}", token, namespace=namespace)

    def token_kubeconfig(self, label: str, token: str, *, namespace: str = "default") -> Path:
        """Kubeconfig with any token."""
        path = self.folder / f"{label}.kubeconfig"
        return write_kubeconfig(
            path, server=self.server, authority=self.authority, token=token, namespace=namespace
        )


def _current(config: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Cluster and user of the current context."""

    def named(kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(each for each in config[kind] if each["name"] == name)
        return found

    context = named("contexts", config["current-context"])["context"]
    return named("clusters", context["cluster"])["cluster"], named("users", context["user"])["user"]


def _material(source: dict[str, Any], key: str) -> bytes:
    """PEM that a kubeconfig carries or names."""
    inside = source.get(f"{key}-data")
    return base64.b64decode(inside) if inside else Path(source[key]).read_bytes()


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")
