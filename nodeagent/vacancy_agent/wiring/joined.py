"""The process of an agent that is a member of a cluster: it lends by what the cluster says, and without it.

Invariant: what lends is the same `Agent` that runs alone, and the cluster is a source of configurations and a
reader of reports beside it. It starts by the configuration that ran last, whether or not the API server can
be reached, and idles where there is none. The tokens in this machine's `tokens.json` read and switch here
whatever the cluster says: the owner can always say no.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vacancy_agent.admin.report import agent_status
from vacancy_agent.clock import SystemClock
from vacancy_agent.cluster.identity import JoinError, read_identity
from vacancy_agent.cluster.member import Member
from vacancy_agent.core.conditions import Finding, Status
from vacancy_agent.store.errors import StoreError
from vacancy_agent.translate import LISTEN_ALONE
from vacancy_agent.wiring import secret_files
from vacancy_agent.wiring import tell as log
from vacancy_agent.wiring.agent import Agent
from vacancy_agent.wiring.api_server import ApiServer
from vacancy_agent.wiring.config import RefusedError
from vacancy_agent.wiring.contract import configuration, tokens_of
from vacancy_agent.wiring.main import StartError, on_signals, process
from vacancy_api.agent_config import AgentConfigInvalid, TokenDigest, build_agent_config, parse_agent_config
from vacancy_api.lending_host import LendingHost
from vacancy_api.reasons import ConditionType

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from pathlib import Path

    from vacancy_agent.clock import Clock
    from vacancy_agent.cluster.identity import Identity
    from vacancy_agent.cluster.link import Tell
    from vacancy_agent.core.conditions import Condition
    from vacancy_agent.proxy.host import Journalist
    from vacancy_agent.store.state import StateDir, Tokens
    from vacancy_agent.wiring.config import Configuration
    from vacancy_api.agent_config import AgentConfig


def main(join: Path, state_dir: Path | None, *, quiet: bool = False) -> int:
    """Run an agent with the identity in a folder until a signal ends it.

    Raises:
        StartError: it cannot start, or the state directory fails it.
        ExceptionGroup: a part of it failed.
    """
    try:
        identity = read_identity(join)
    except JoinError as error:
        raise StartError(error.errors, input_is_wrong=True) from error

    def work(state: StateDir) -> Coroutine[Any, Any, None]:
        return _serve(identity, state)

    return process(work, state_dir, quiet=quiet)


class Joined:
    """The agent, as its membership sees it (`cluster.member.Joining`)."""

    def __init__(
        self, agent: Agent, document: AgentConfig | None, state: StateDir, local: Local, tell: Tell
    ) -> None:
        """`document` is what `agent` runs; None: it idles."""
        self._agent = agent
        self._document = document
        self._state = state
        self._local = local
        self._tell = tell

    @property
    def document(self) -> AgentConfig | None:
        """What runs; None: idle."""
        return self._document

    async def run_by(self, document: AgentConfig, text: str) -> list[str]:
        """Run it and keep it for the next start; returns why not, a line each with its path."""
        try:
            config = self._local.completed(configuration(document))
        except RefusedError as error:
            return error.errors
        errors = secret_files.problems(config, self._state)
        if errors:
            return errors
        try:
            await self._agent.apply(config)
        except StoreError as error:
            return [str(error)]
        self._document = document
        await self._keep(text)
        return []

    async def idle(self, why: str) -> None:
        """Lend nothing, and start idle the next time. Told when both are so."""
        await self._agent.apply(self._local.idle)
        self._document = None
        self.waiting()
        await self._keep("")
        self._tell("idle", why=why)

    def waiting(self) -> None:
        """Say that there is no configuration, which is no fault."""
        self._find(Status.UNKNOWN, "NoConfiguration", "there is no configuration for this host yet")

    def refuse(self, errors: list[str]) -> None:
        """Name what is wrong with the newest configuration."""
        self._agent.refuse_config(errors)

    def unreadable(self, why: str) -> None:
        """Say that the newest configuration cannot be read."""
        self._find(Status.UNKNOWN, "Unreadable", why)

    def status(self) -> Mapping[str, Any]:
        """`status.agent` as it is now; the address is the one by which others reach this machine."""
        agent, clock = self._agent, self._agent.host.clock
        external = None if self.document is None else self.document.spec.external
        return {
            **agent_status(agent, clock.now(), clock.wall()),
            "address": None if external is None else external.address,
            "configDigest": None if self.document is None else self.document.digest,
        }

    def conditions(self) -> Sequence[Condition]:
        """The conditions as they are now."""
        return self._agent.conditions.all()

    def _find(self, status: Status, reason: str, message: str) -> None:
        self._agent.findings.find(Finding(ConditionType.CONFIG_APPLIED, status, reason, message))

    async def _keep(self, text: str) -> None:
        try:
            await asyncio.to_thread(self._state.save_config, text.encode())
        except StoreError as error:
            self._tell("configuration not kept", why=error)


class Local:
    """What this machine adds to a configuration, and what it runs without one."""

    def __init__(self, identity: Identity, tokens: Tokens) -> None:
        self._identity = identity
        self._tokens = tokens_of(
            (
                TokenDigest.of("local/read", ["read"], tokens.read),
                TokenDigest.of("local/admin", ["admin"], tokens.admin),
            )
        )
        self.idle = self.completed(configuration(_nothing_lent(identity)))

    def completed(self, config: Configuration) -> Configuration:
        """With the tokens of this machine."""
        return replace(config, local_tokens=self._tokens)

    def last(self, state: StateDir, tell: Tell) -> tuple[Configuration, AgentConfig | None]:
        """What ran last, and its document; idle, and None, where there is nothing that can be run."""
        try:
            content = state.load_config()
            if not content:
                return self.idle, None
            document = parse_agent_config(content.decode())
            config = self.completed(configuration(document))
            errors = secret_files.problems(config, state)
            own = (self._identity.namespace, self._identity.name)
            if (document.host.namespace, document.host.name) != own:
                errors = [f"it is for {document.host.namespace}/{document.host.name}"]
        except (StoreError, AgentConfigInvalid, RefusedError, UnicodeDecodeError) as error:
            errors = [str(error)]
        if not errors:
            return config, document
        tell("last configuration cannot be run", errors=" | ".join(errors))
        return self.idle, None


def _nothing_lent(identity: Identity) -> AgentConfig:
    host = {
        "apiVersion": "vacancy.dev/v1alpha1",
        "kind": "LendingHost",
        "metadata": {"namespace": identity.namespace, "name": identity.name},
        "spec": {"owner": {"presence": "headless"}},
    }
    return build_agent_config(LendingHost.model_validate(host), [], default_listen=LISTEN_ALONE)


class JoinedAgent:
    """An agent and its membership. Make it on the running loop."""

    def __init__(self, identity: Identity, state: StateDir, clock: Clock, tell: Journalist) -> None:
        local = Local(identity, state.tokens())
        config, document = local.last(state, tell)
        self.agent = Agent(config, state, clock, tell)
        self.api = ApiServer(self.agent, state)
        self.agent.api = self.api
        self.joined = Joined(self.agent, document, state, local, tell)
        self._member = Member(self.joined, identity, state.path / "secrets", clock, tell)
        self.agent.findings.changed = self._member.nudge
        self.agent.readings.on_wake.append(self._member.woke)

    async def run(self, ready: asyncio.Event) -> None:
        """Lend, and be a member of the cluster, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.agent.run(ready))
            await ready.wait()
            if self.joined.document is None:
                self.joined.waiting()
            group.create_task(self._member.run())

    async def close(self) -> None:
        """Stop listening, then give up the state directory's files."""
        await self.api.close()
        await self.agent.close()


async def _serve(identity: Identity, state: StateDir) -> None:
    whole = JoinedAgent(identity, state, SystemClock(), log.tell)
    stop, ready = asyncio.Event(), asyncio.Event()
    on_signals(stop, asyncio.Event())
    log.tell("joined", host=f"{identity.namespace}/{identity.name}", server=identity.server)
    try:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(whole.run(ready))
            await stop.wait()
            log.tell("stopping")
            await whole.api.close()
            running.cancel()
    finally:
        await whole.close()
