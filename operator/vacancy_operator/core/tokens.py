"""The host's own tokens, and what a service account's token says about itself.

Invariant: a token that exists and is long enough is never replaced. A Secret that lost one of its keys gets
that key back and keeps the others. A token too short to be a secret is taken for a mistake.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vacancy_operator.core.facts import Wall

if TYPE_CHECKING:
    from vacancy_api.agent_config import ScopeName
    from vacancy_operator.core.kinds import Object

SCOPES: tuple[ScopeName, ...] = ("borrow", "read", "admin")
"""Keys of the Secret, and what each is good for."""
SHORTEST = 16
"""Characters; ours have 43."""


def decoded(secret: Object | None, key: str) -> str | None:
    """One value of a Secret; None: it is missing or not text."""
    data = (secret or {}).get("data")
    value = data.get(key) if isinstance(data, Mapping) else None
    try:
        return base64.b64decode(value, validate=True).decode() if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None


def encoded(values: Mapping[str, str]) -> dict[str, str]:
    """Values as a Secret holds them."""
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}


def host_tokens(secret: Object | None, spare: tuple[str, str, str]) -> dict[str, str]:
    """The tokens of a host by scope: those in its Secret, and a spare one for each that is missing."""
    found = {scope: decoded(secret, scope) for scope in SCOPES}
    return {
        scope: found[scope] or "" if len(found[scope] or "") >= SHORTEST else fresh
        for scope, fresh in zip(SCOPES, spare, strict=True)
    }


@dataclass(frozen=True, slots=True)
class Claims:
    """What a bound service account token says."""

    issued: Wall
    expires: Wall
    account_uid: str
    secret_uid: str

    @property
    def renew_at(self) -> Wall:
        """Two thirds of its life: a machine that is off for the last third has to join again."""
        return Wall(self.issued + (self.expires - self.issued) * 2 / 3)


def claims(token: str | None) -> Claims | None:
    """Reads a token without checking its signature, the API server's business. None: no such token."""
    try:
        payload = (token or "").split(".")[1]
        said = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        bound = said["kubernetes.io"]
        return Claims(
            issued=Wall(float(said["iat"])),
            expires=Wall(float(said["exp"])),
            account_uid=_uid(bound, "serviceaccount"),
            secret_uid=_uid(bound, "secret"),
        )
    except (IndexError, KeyError, TypeError, ValueError):
        return None


def _uid(bound: Any, what: str) -> str:
    return str(bound[what]["uid"])
