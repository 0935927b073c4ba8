"""The configuration feed: from ConfigMap and LendingHost to what the agent runs.

Invariant: what runs is the newest configuration that was valid as a whole, of the LendingHost that exists.
An invalid one changes nothing and is named; an API server that is away changes nothing; a LendingHost that is
deleted, or another object under the same name, ends what ran for the old one, even if its ConfigMap is still
there. A ConfigMap that is missing alone ends nothing: the operator makes it again.

Both objects are watched; each state of either leads to one decision:

1. The LendingHost is gone: idle.
2. No ConfigMap: go on, unless what runs belongs to another LendingHost.
3. It cannot be read, or is for somebody else: refuse it.
4. It is a left-over of an earlier LendingHost: wait for the next.
5. Its Secrets are not all there: refuse it.
6. Otherwise run it, unless it runs.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from vacancy_agent.cluster.fault import ApiError
from vacancy_agent.cluster.link import Delays
from vacancy_agent.cluster.secret_copies import wanted
from vacancy_agent.store.errors import StoreError
from vacancy_api.agent_config import AgentConfigInvalid, parse_agent_config

if TYPE_CHECKING:
    from vacancy_agent.cluster.identity import Identity
    from vacancy_agent.cluster.secret_copies import SecretCopies
    from vacancy_api.agent_config import AgentConfig

Document = dict[str, Any]
KEY = "agent.json"
AGAIN_S = 30.0
"""The longest between two looks for what a configuration lacks."""


class Runner(Protocol):
    """Whoever runs configurations."""

    @property
    def document(self) -> AgentConfig | None:
        """What runs; None: idle."""
        ...

    async def run_by(self, document: AgentConfig, text: str) -> list[str]:
        """Run it and keep it for the next start; returns why not, a line each with its path."""
        ...

    async def idle(self, why: str) -> None:
        """Lend nothing, and start idle the next time."""
        ...

    def refuse(self, errors: list[str]) -> None:
        """Name what is wrong with the newest configuration."""
        ...

    def unreadable(self, why: str) -> None:
        """Say that the newest configuration cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class HostSeen:
    """The LendingHost as it was seen last."""

    uid: str | None
    """None: there is none."""
    generation: int | None = None


class Feed:
    """One for an agent."""

    def __init__(self, identity: Identity, secrets: SecretCopies, runner: Runner) -> None:
        self._identity = identity
        self._secrets = secrets
        self._runner = runner
        self._deciding = asyncio.Lock()
        self._text: str | None = None
        self._config_seen = False
        self._lacking = asyncio.Event()
        """The newest configuration waits for what may come without a word: a Secret, space."""
        self._settled = True
        """The newest configuration runs, as far as it can be told."""
        self.host: HostSeen | None = None
        """None: it was not seen yet."""
        self.applying = False
        """A configuration is being applied: what is reported now is half old and half new."""
        self.judged: int | None = None
        """Generation of the newest configuration that was judged."""

    async def run(self) -> None:
        """Judge again what lacked something, until cancelled."""
        delays = Delays(AGAIN_S)
        while True:
            if not self._lacking.is_set():
                delays.reset()
            await self._lacking.wait()
            await asyncio.sleep(delays.next())
            try:
                await self._decide()
            except ApiError:
                self._lacking.set()

    async def config_seen(self, found: Document | None) -> None:
        """The ConfigMap is like this now.

        Raises:
            ApiError: a Secret cannot be read just now.
        """
        data = None if found is None else found.get("data") or {}
        self._text = None if data is None else str(data.get(KEY, ""))
        self._config_seen = True
        await self._decide()

    async def host_seen(self, found: Document | None) -> None:
        """The LendingHost is like this now.

        Raises:
            ApiError: a Secret cannot be read just now.
        """
        metadata = None if found is None else found.get("metadata") or {}
        if metadata is None or metadata.get("deletionTimestamp"):
            seen = HostSeen(None)
        else:
            seen = HostSeen(str(metadata.get("uid", "")), metadata.get("generation"))
        known, self.host = self.host, seen
        if known is None or known.uid != seen.uid:
            await self._decide()

    def config_failed(self, fault: ApiError) -> None:
        """The ConfigMap cannot be had."""
        if fault.denied and not fault.outage:
            self._settled = False
            self._runner.unreadable(f"ConfigMap {self._identity.prefix}-config cannot be read: {fault}")

    async def _decide(self) -> None:
        async with self._deciding:
            host, running = self.host, self._runner.document
            if host is not None and host.uid is None:  # 1
                await self._idle("the LendingHost is gone")
                return
            if running is not None and not self._belongs(running):
                await self._idle("the LendingHost is another one now")
            if self._config_seen and self._text is not None:  # else 2
                await self._judge(self._text)

    async def _judge(self, text: str) -> None:
        self._lacking.clear()
        try:
            # Beside the loop: hundreds of tokens take longer than a stream should wait.
            document = await asyncio.to_thread(parse_agent_config, text)
        except AgentConfigInvalid as error:  # 3
            self._refuse(_generation(text), [str(one) for one in error.errors])
            return
        own = (self._identity.namespace, self._identity.name)
        if (document.host.namespace, document.host.name) != own:  # 3
            named = f"{document.host.namespace}/{document.host.name}"
            self._refuse(None, [f"host: is {named}, but this agent is {own[0]}/{own[1]}"])
            return
        if self._belongs(document):  # else 4
            await self._run(document, text)

    async def _run(self, document: AgentConfig, text: str) -> None:
        generation = document.host.generation
        try:
            fetched = await self._secrets.fetch(document)
            if fetched.errors:  # 5
                self._refuse(generation, fetched.errors)
                self._lacking.set()
                return
            renewed = await self._secrets.keep(fetched)
        except StoreError as error:
            self._refuse(generation, [str(error)])
            self._lacking.set()
            return
        before = self._runner.document
        if before is None or before.digest != document.digest or renewed or not self._settled:  # 6
            self.applying = True
            try:
                errors = await self._runner.run_by(document, text)
            finally:
                self.applying = False
            if errors:
                self._refuse(generation, errors)
                return
            await self._secrets.drop(_names(before) - _names(document))
        self.judged, self._settled = generation, True

    async def _idle(self, why: str) -> None:
        running = self._runner.document
        if running is not None:
            await self._runner.idle(why)
            await self._secrets.drop(_names(running))
        self.judged = None

    def _belongs(self, document: AgentConfig) -> bool:
        uid = None if self.host is None else self.host.uid
        return uid is None or document.host.uid in {"", uid}

    def _refuse(self, generation: int | None, errors: list[str]) -> None:
        self.judged, self._settled = generation, False
        self._runner.refuse(errors)


def _names(document: AgentConfig | None) -> set[str]:
    return set() if document is None else {one.secret for one in wanted(document)}


def _generation(text: str) -> int | None:
    """The generation in a configuration that is wrong elsewhere."""
    try:
        generation = json.loads(text)["host"]["generation"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return generation if isinstance(generation, int) and not isinstance(generation, bool) else None
