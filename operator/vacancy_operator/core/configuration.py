"""From a LendingHost and its tokens to the agent's configuration, or to why there is none.

Invariant: an agent is never given half a configuration. Where the spec is wrong as a whole, the last good one
stays where it is and the condition `Accepted` says what to change. The API server's schema refuses nearly all
of these before; what it cannot know (time zones, what holds between tokens) is judged here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vacancy_api.agent_config import AgentConfigInvalid, TokenDigest, build_agent_config
from vacancy_api.manifest import ManifestInvalid, parse_manifest
from vacancy_operator.core.kinds import metadata, uid
from vacancy_operator.core.tokens import SCOPES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_api.problems import ContractInvalid
    from vacancy_operator.core.kinds import Object

MOST_SHOWN = 900
"""Characters of all errors in a condition's message."""


@dataclass(frozen=True, slots=True)
class Configured:
    """A host whose spec is right."""

    digest: str
    text: str
    """`agent.json`. The model it was made from is not kept: it takes ten times the room."""
    external: bool
    secrets: tuple[str, ...]
    """Names of the Secrets that the spec refers to."""
    upstreams: frozenset[str]


@dataclass(frozen=True, slots=True)
class Unacceptable:
    """A host whose spec is wrong."""

    message: str


class Configurations:
    """Remembers the last configuration of each host, since most decisions are about anything but the spec."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[tuple[Any, ...], Configured | Unacceptable]] = {}

    def of(self, host: Object, tokens: Mapping[str, str]) -> Configured | Unacceptable:
        """The configuration for a host as it is now."""
        about = metadata(host)
        name = str(about["name"])
        key = (uid(host), about.get("generation"), about.get("namespace"), tuple(tokens.items()))
        last = self._last.get(name)
        if last is None or last[0] != key:
            last = self._last[name] = (key, configure(host, tokens))
        return last[1]

    def forget(self, name: str) -> None:
        """The host is gone."""
        self._last.pop(name, None)


def configure(host: Object, tokens: Mapping[str, str]) -> Configured | Unacceptable:
    """Judge a LendingHost and build its agent's configuration.

    Args:
        host: The object as the API server has it.
        tokens: The host's own tokens by scope.
    """
    name = str(metadata(host)["name"])
    try:
        parsed = parse_manifest(host)
        digests = [TokenDigest.of(f"{name}/{scope}", [scope], tokens[scope]) for scope in SCOPES]
        agent = build_agent_config(parsed, digests)
    except (ManifestInvalid, AgentConfigInvalid) as wrong:
        return Unacceptable(_told(wrong))
    spec = parsed.spec
    tls = spec.access.tls
    named = {one.credential_secret_ref.name for one in spec.upstreams if one.credential_secret_ref}
    return Configured(
        digest=agent.digest,
        text=agent.to_json(),
        external=spec.external is not None,
        secrets=tuple(sorted(named | ({tls.secret_ref.name} if tls else set()))),
        upstreams=frozenset(one.name for one in spec.upstreams),
    )


def _told(wrong: ContractInvalid) -> str:
    text = ""
    for index, error in enumerate(wrong.errors):
        more = f"{'; ' if text else ''}{error}"
        if len(text) + len(more) > MOST_SHOWN:
            return f"{text or str(error)[:MOST_SHOWN]}; and {len(wrong.errors) - max(index, 1)} more"
        text += more
    return text
