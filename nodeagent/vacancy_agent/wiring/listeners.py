"""The proxies' listeners: they follow the configuration, and one that did not change is left alone."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vacancy_agent.proxy.app import GatedProxy
from vacancy_agent.proxy.debugged import watch
from vacancy_agent.store.errors import StoreError
from vacancy_agent.wiring.secret_files import CertificateError, certificate, credential
from vacancy_dialects import table_for
from vacancy_edge import Budget
from vacancy_http import Listener, ListenerLimits, Upstream, UpstreamLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_agent.core.settings import Limits, UpstreamSettings
    from vacancy_agent.proxy.host import Host
    from vacancy_agent.store.journal import HoldJournal
    from vacancy_agent.store.state import StateDir
    from vacancy_agent.wiring.config import Configuration
    from vacancy_agent.wiring.secret_files import Certificate
    from vacancy_http import Counters

GRACE_S = 1.0
"""For replies that are being written when a listener closes; what streams longer is cut."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything that a listener is made of: another shape, another listener."""

    upstream: UpstreamSettings
    listen: str
    limits: Limits
    certificate: Certificate | None
    credential: str | None = field(repr=False)


@dataclass(slots=True)
class _Running:
    shape: Shape
    proxy: GatedProxy
    listener: Listener
    upstream: Upstream


class Listeners:
    """One per upstream."""

    def __init__(self, host: Host, journal: HoldJournal, state: StateDir) -> None:
        self._host = host
        self._journal = journal
        self._state = state
        self._running: dict[str, _Running] = {}
        self._changing = asyncio.Lock()
        self._watched = False
        self._closed = False

    def bound(self, upstream: str) -> bool:
        """Whether the upstream's proxy listens."""
        return upstream in self._running

    def deaf(self) -> list[str]:
        """The proxies that listened and do not any more, though nobody stopped them."""
        ended = [name for name, running in self._running.items() if not running.listener.listening]
        return [f"the proxy of {name}" for name in ended]

    def counters(self) -> Mapping[str, Counters]:
        """The engine's counts by upstream."""
        return {name: running.listener.counters for name, running in self._running.items()}

    def watch(self, on: bool) -> None:
        """Tell every request of every listener, also of those to come, or not any more."""
        self._watched = on
        for running in self._running.values():
            watch(running.proxy, on=on)

    def connect_anew(self) -> None:
        """The machine slept: no request is sent on a connection to a server from before."""
        for running in self._running.values():
            running.upstream.close_idle()

    async def apply(self, config: Configuration) -> list[str]:
        """Have exactly the listeners of this configuration; also to try again what failed before.

        Returns:
            Why a listener could not be started, one line each; the others run.
        """
        async with self._changing:
            errors: list[str] = []
            wanted = {} if self._closed else self._shapes(config, errors)
            await self._stop([n for n, running in self._running.items() if wanted.get(n) != running.shape])
            paths = {name: f"spec.upstreams[{i}]" for i, name in enumerate(config.host.upstreams)}
            for name, shape in wanted.items():
                if name not in self._running:
                    errors += await self._start(name, shape, paths[name])
        return errors

    async def close(self) -> None:
        """Stop every one, for good."""
        async with self._changing:
            self._closed = True
            await self._stop(list(self._running))

    def _shapes(self, config: Configuration, errors: list[str]) -> dict[str, Shape]:
        wanted = {}
        for name, upstream in config.host.upstreams.items():
            try:
                tls = certificate(self._state, config.access.tls_secret)
                key = credential(self._state, upstream)
                wanted[name] = Shape(upstream, config.access.listen, config.limits, tls, key)
            except StoreError as error:  # gone since the configuration was judged: what runs goes on
                errors.append(f"spec.upstreams: {name}: {error}")
                if name in self._running:
                    wanted[name] = self._running[name].shape
        return wanted

    async def _start(self, name: str, shape: Shape, path: str) -> list[str]:
        upstream = _engine_upstream(shape.upstream)
        proxy = self._proxy(shape, upstream)
        watch(proxy, on=self._watched)
        try:
            listener = Listener(
                proxy,
                host=shape.listen,
                port=shape.upstream.port,
                limits=engine_limits(shape.limits),
                ssl=shape.certificate.context() if shape.certificate is not None else None,
            )
            await listener.start()
        except CertificateError as error:
            return [f"spec.access.tls.secretRef: {error}"]
        except OSError as error:
            return [cannot_listen(error, f"{path}.port", name, shape.listen, shape.upstream.port)]
        self._running[name] = _Running(shape, proxy, listener, upstream)
        self._host.tell("listens", upstream=name, address=shape.listen, port=listener.port)
        return []

    def _proxy(self, shape: Shape, upstream: Upstream) -> GatedProxy:
        settings = shape.upstream
        return GatedProxy(
            self._host,
            settings,
            table_for(settings.dialect.value),
            upstream,
            self._journal.partition(settings.name),
            Budget(shape.limits.max_buffered_body),
            max_body=shape.limits.max_request_body,
            credential=shape.credential,
        )

    async def _stop(self, names: list[str]) -> None:
        """Stop these side by side: what still streams gets one grace, not one after the other."""
        stopped = [(name, self._running.pop(name)) for name in names]
        await asyncio.gather(*(running.listener.close(GRACE_S) for _, running in stopped))
        for name, running in stopped:
            running.upstream.close()
            self._host.tell("stopped listening", upstream=name)


def cannot_listen(error: OSError, port_path: str, what: str, address: str, port: int) -> str:
    """Why a socket cannot be had, beginning with the field to change."""
    address_is_wrong = error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror)
    path = "spec.access.listen" if address_is_wrong else port_path
    why = {errno.EADDRINUSE: "another program listens there", errno.EACCES: "not permitted to this user"}
    told = why.get(error.errno or 0, error.strerror or str(error))
    return f"{path}: {what} cannot listen on {address}:{port}: {told}"


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
        max_tunnels=limits.max_tunnels,
        tunnel_idle_s=limits.tunnel_idle,
    )


def _engine_upstream(settings: UpstreamSettings) -> Upstream:
    target = settings.target
    tls = ssl.create_default_context() if target.scheme == "https" else None
    limits = UpstreamLimits(max_idle=settings.slots + 4)
    return Upstream(target.host, target.port, limits=limits, tls=tls)
