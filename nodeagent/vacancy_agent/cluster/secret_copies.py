"""The Secrets that a configuration refers to, copied to the state directory.

Invariant: an agent that starts while the API server is away finds there what its last good configuration
needs. Only what is referred to is copied, each key a file of mode 0600, and what is no longer referred to is
removed. All of a configuration's Secrets are read before any is written: a configuration with one that is
missing changes nothing.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vacancy_agent.cluster.fault import FORBIDDEN, MISSING, ApiError
from vacancy_agent.store.errors import StoreError
from vacancy_agent.store.files import private_folder, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from vacancy_agent.cluster.api import ClusterApi
    from vacancy_agent.cluster.identity import Identity
    from vacancy_api.agent_config import AgentConfig


@dataclass(frozen=True, slots=True)
class Wanted:
    """A key of a Secret, and the field that refers to it."""

    path: str
    secret: str
    key: str


@dataclass(slots=True)
class Fetched:
    """What was found."""

    files: dict[tuple[str, str], bytes] = field(default_factory=dict, repr=False)
    errors: list[str] = field(default_factory=list)


def wanted(document: AgentConfig) -> Iterator[Wanted]:
    """Every key of a Secret that a configuration needs."""
    for index, upstream in enumerate(document.spec.upstreams):
        ref = upstream.credential_secret_ref
        if ref is not None:
            yield Wanted(f"spec.upstreams[{index}].credentialSecretRef", ref.name, ref.key)
    if document.spec.access.tls is not None:
        for key in ("tls.crt", "tls.key"):
            yield Wanted("spec.access.tls.secretRef", document.spec.access.tls.secret_ref.name, key)


class SecretCopies:
    """The folder of copies."""

    def __init__(self, api: ClusterApi, identity: Identity, folder: Path) -> None:
        self._api = api
        self._identity = identity
        self._folder = folder

    async def fetch(self, document: AgentConfig) -> Fetched:
        """Read all that a configuration needs.

        Raises:
            ApiError: the API server does not answer; ask again.
        """
        found = Fetched()
        secrets: dict[str, dict[str, Any] | ApiError] = {}
        for want in wanted(document):
            if want.secret not in secrets:
                secrets[want.secret] = await self._read(want.secret)
            secret = secrets[want.secret]
            content = secret if isinstance(secret, ApiError) else _content(secret, want.key)
            if isinstance(content, bytes):
                found.files[want.secret, want.key] = content
            else:
                found.errors.append(
                    f"{want.path}: Secret {self._identity.namespace}/{want.secret}: {content}"
                )
        return found

    async def keep(self, fetched: Fetched) -> bool:
        """Write what is not there yet; returns whether anything was.

        Raises:
            StoreError: it cannot be written.
        """
        return await asyncio.to_thread(self._keep, fetched)

    async def drop(self, names: Iterable[str]) -> None:
        """Remove the copies of these Secrets."""
        for name in names:
            await asyncio.to_thread(shutil.rmtree, self._folder / name, ignore_errors=True)

    async def _read(self, name: str) -> dict[str, Any] | ApiError:
        try:
            return await self._api.get(f"/api/v1/namespaces/{self._identity.namespace}/secrets/{name}")
        except ApiError as fault:
            if fault.status in {MISSING, FORBIDDEN}:
                return fault
            raise

    def _keep(self, fetched: Fetched) -> bool:
        changed = False
        for (name, key), content in fetched.files.items():
            path = self._folder / name / key
            if _now(path) != content:
                private_folder(self._folder)
                private_folder(path.parent)
                replace_file(path, content)
                changed = True
        return changed


def _content(secret: dict[str, Any], key: str) -> bytes | str:
    """The value of a key, or why there is none."""
    value = (secret.get("data") or {}).get(key)
    if value is None:
        return f"has no key {key}"
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return f"key {key} is not base64"


def _now(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError.of("read", path, error) from error
