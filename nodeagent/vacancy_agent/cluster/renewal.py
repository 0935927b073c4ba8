"""A new token before the old one ends: fetched from the join Secret, where the operator renews it.

Invariant: what replaces a file of the join folder came from the Secret, whole, over the identity that the
file holds; a refusal or an outage replaces nothing. A machine that was off while its token ended has to join
again: an expired token cannot fetch its successor.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING, Any

from vacancy_agent.cluster.fault import ApiError
from vacancy_agent.cluster.identity import JoinError
from vacancy_agent.cluster.link import dice
from vacancy_agent.store.errors import StoreError
from vacancy_agent.store.files import replace_file

if TYPE_CHECKING:
    from vacancy_agent.cluster.api import ClusterApi
    from vacancy_agent.cluster.identity import Identity
    from vacancy_agent.cluster.link import Tell

LOOK_S = 120.0
"""Between two looks: a token of ten minutes, the shortest there is, is renewed with three minutes to go."""
FILES = ("token", "ca.crt")


class Renewal:
    """One for an agent."""

    def __init__(self, api: ClusterApi, identity: Identity, tell: Tell) -> None:
        self._api = api
        self._identity = identity
        self._tell = tell
        self._trouble: str | None = None

    async def run(self) -> None:
        """Look for a new token until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S * (0.9 + 0.2 * dice()))

    async def look(self) -> None:
        """Take over what is new in the join Secret."""
        identity = self._identity
        path = f"/api/v1/namespaces/{identity.namespace}/secrets/{identity.prefix}-join"
        try:
            data = (await self._api.get(path)).get("data") or {}
        except ApiError:
            return  # a host in the cluster has no such Secret; the link tells of everything else
        try:
            for name in FILES:
                await self._take_over(name, data.get(name))
        except StoreError as error:
            if str(error) != self._trouble:
                self._tell("token not renewed", why=error)
            self._trouble = str(error)

    async def _take_over(self, name: str, value: Any) -> None:
        new = _text(value)
        if new and new != self._known(name):
            await asyncio.to_thread(replace_file, self._identity.folder / name, new.encode())
            self._tell("renewed", file=self._identity.folder / name)

    def _known(self, name: str) -> str | None:
        try:
            return self._identity.token() if name == "token" else self._identity.authority()
        except JoinError:
            return None


def _text(value: Any) -> str | None:
    try:
        return base64.b64decode(value, validate=True).decode().strip() if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None
