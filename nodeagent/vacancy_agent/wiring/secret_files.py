"""The secrets that a configuration refers to: files below the state directory.

Invariant: they are looked at before a configuration is applied, so a missing one is an error of the
configuration, named with the file to write, and the configuration before goes on. Their content is part of
what a listener is made of: a renewed certificate is another listener, at the next SIGHUP.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from vacancy_agent.store.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from vacancy_agent.core.settings import UpstreamSettings
    from vacancy_agent.store.state import StateDir
    from vacancy_agent.wiring.config import Configuration

CERTIFICATE, KEY = "tls.crt", "tls.key"


class CertificateError(Exception):
    """A certificate and its key cannot be used."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its key, as they are in their files now."""

    folder: Path
    digest: str
    """Of both files: a renewed certificate is another one."""

    def context(self) -> ssl.SSLContext:
        """TLS for a listener.

        Raises:
            CertificateError: the files do not hold a certificate and its key.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.folder / CERTIFICATE, self.folder / KEY, _no_passphrase)
        except (OSError, ValueError) as error:
            why = getattr(error, "reason", None) or error
            files = f"{self.folder / CERTIFICATE} and {self.folder / KEY}"
            wanted = "they must hold a certificate in PEM format and its key, without a passphrase"
            raise CertificateError(f"{files} cannot be used ({why}): {wanted}") from error
        return context


def certificate(state: StateDir, secret: str | None) -> Certificate | None:
    """The certificate of a secret; None where none is named.

    Raises:
        StoreError: one of its files is not there or cannot be read.
    """
    if secret is None:
        return None
    content = "\0".join(state.secret(secret, name) for name in (CERTIFICATE, KEY))
    return Certificate(state.path / "secrets" / secret, sha256(content.encode()).hexdigest())


def credential(state: StateDir, upstream: UpstreamSettings) -> str | None:
    """What an upstream wants to see in Authorization; None: nothing.

    Raises:
        StoreError: the file is not there, cannot be read, or holds what no header can carry.
    """
    named = upstream.credential
    if named is None:
        return None
    text = state.secret(named.name, named.key)
    if not text or not text.isprintable() or not text.isascii():
        path = state.path / "secrets" / named.name / named.key
        raise StoreError(f"{path} must hold the credential alone, in one line of ASCII characters")
    return text


def problems(config: Configuration, state: StateDir) -> list[str]:
    """What keeps the secrets of a configuration from being used, a line each with its path."""
    found = []
    for index, upstream in enumerate(config.host.upstreams.values()):
        try:
            credential(state, upstream)
        except StoreError as error:
            found.append(f"spec.upstreams[{index}].credentialSecretRef: {error}")
    try:
        tls = certificate(state, config.access.tls_secret)
        if tls is not None:
            tls.context()
    except (StoreError, CertificateError) as error:
        found.append(f"spec.access.tls.secretRef: {error}")
    return found


def _no_passphrase() -> str:
    # Without an answer of ours, OpenSSL would ask at the terminal and wait.
    raise ValueError("the key is encrypted")
