"""The proxies' listeners: they follow the configuration, and one that did not change is left alone."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vacancy_agent.proxy.app import GatedProxy
from vacancy_dialects import table_for
from vacancy_edge import Budget
from vacancy_http import Listener, ListenerLimits, Upstream, UpstreamLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_agent.core.settings import AccessSettings, Limits, UpstreamSettings
    from vacancy_agent.proxy.host import Host
    from vacancy_agent.store.journal import HoldJournal
    from vacancy_agent.store.state import StateDir
    from vacancy_agent.wiring.config import Configuration
    from vacancy_http import Counters

GRACE_S = 1.0
"""For replies that are being written when a listener closes; what streams longer is cut."""


class CannotListenError(Exception):
    """A port cannot be bound, or a certificate cannot be read."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything that a listener is made of: another shape, another listener."""

    upstream: UpstreamSettings
    access: AccessSettings
    limits: Limits


@dataclass(slots=True)
class _Running:
    shape: Shape
    listener: Listener
    upstream: Upstream


class Listeners:
    """One per upstream."""

    def __init__(self, host: Host, journal: HoldJournal, state: StateDir) -> None:
        self._host = host
        self._journal = journal
        self._state = state
        self._running: dict[str, _Running] = {}

    def bound(self, upstream: str) -> bool:
        """Whether the upstream's proxy listens."""
        return upstream in self._running

    def missing(self, config: Configuration) -> bool:
        """Whether a proxy of this configuration does not listen."""
        return not config.host.upstreams.keys() <= self._running.keys()

    def counters(self) -> Mapping[str, Counters]:
        """The engine's counts by upstream."""
        return {name: running.listener.counters for name, running in self._running.items()}

    async def apply(self, config: Configuration) -> list[str]:
        """Have exactly the listeners of this configuration.

        Returns:
            Why a listener could not be started, one line each; the others run.
        """
        wanted = {
            name: Shape(upstream, config.access, config.limits)
            for name, upstream in config.host.upstreams.items()
        }
        for name in [n for n, running in self._running.items() if wanted.get(n) != running.shape]:
            await self._stop(name)
        errors = []
        for name, shape in wanted.items():
            if name not in self._running:
                try:
                    await self._start(name, shape)
                except (CannotListenError, OSError) as error:
                    errors.append(
                        f"spec.upstreams: {name} cannot listen on port {shape.upstream.port}: {error}"
                    )
        return errors

    async def close(self) -> None:
        """Stop every one."""
        for name in list(self._running):
            await self._stop(name)

    async def _start(self, name: str, shape: Shape) -> None:
        settings = shape.upstream
        credential = None
        if settings.credential is not None:
            credential = self._state.secret(settings.credential.name, settings.credential.key)
        target = settings.target
        tls = ssl.create_default_context() if target.scheme == "https" else None
        upstream = Upstream(
            target.host, target.port, limits=UpstreamLimits(max_idle=settings.slots + 4), tls=tls
        )
        app = GatedProxy(
            self._host,
            settings,
            table_for(settings.dialect.value),
            upstream,
            self._journal.partition(name),
            Budget(shape.limits.max_buffered_body),
            max_body=shape.limits.max_request_body,
            credential=credential,
        )
        listener = Listener(
            app,
            host=shape.access.listen,
            port=settings.port,
            limits=engine_limits(shape.limits),
            ssl=server_context(self._state, shape.access.tls_secret),
        )
        await listener.start()
        self._running[name] = _Running(shape, listener, upstream)
        self._host.tell("listens", upstream=name, address=shape.access.listen, port=listener.port)

    async def _stop(self, name: str) -> None:
        running = self._running.pop(name)
        await running.listener.close(GRACE_S)
        running.upstream.close()
        self._host.tell("stopped listening", upstream=name)


def engine_limits(limits: Limits) -> ListenerLimits:
    """The contract's limits in the engine's terms."""
    return ListenerLimits(
        header_read_s=limits.header_read,
        body_read_s=limits.body_read,
        body_idle_s=limits.body_idle,
        write_stall_s=limits.write_stall,
        keep_alive_s=limits.keep_alive,
        max_connections=limits.max_connections,
        max_body_bytes=limits.max_request_body,
    )


def server_context(state: StateDir, secret: str | None) -> ssl.SSLContext | None:
    """TLS with `tls.crt` and `tls.key` of a secret; None: plain HTTP.

    Raises:
        CannotListenError: they cannot be used.
    """
    if secret is None:
        return None
    folder = state.path / "secrets" / secret
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    except (OSError, ssl.SSLError) as error:
        raise CannotListenError(f"the certificate in {folder} cannot be used: {error}") from error
    return context
