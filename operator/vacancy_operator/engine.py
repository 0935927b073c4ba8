"""kopf as the watch engine, in a thread and a loop of its own, and nothing more.

Invariant: kopf writes nothing. Its handlers are of the kind `event`, they return nothing, and peering and
event posting are off; so no object carries an annotation or a finalizer of kopf's, and an operator that is
removed leaves nothing that blocks a deletion. What kopf sees is handed to the operator's own loop. When kopf
ends, for whatever reason, the process ends: an operator that looks alive and sees nothing is the worst.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from typing import TYPE_CHECKING, Any

import kopf

from vacancy_operator.access import bearer
from vacancy_operator.core.kinds import KINDS, SELECTOR, Kind, Object
from vacancy_operator.no_memory import NoDiff, NoProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vacancy_operator.access import Access
    from vacancy_operator.settings import Settings

    Deliver = Callable[[Kind, str | None, Object], None]

JOIN_S = 10.0
FIRST_S, LONGEST_S = 1.0, 5.0


class EngineError(Exception):
    """kopf ended by itself."""


class _Backoffs:
    """1 s, 2 s, 4 s, then 5 s for ever: an outage never ends a watch, and its end is soon seen."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((FIRST_S, 2.0, 4.0), itertools.repeat(LONGEST_S))


class Engine:
    """Watches every kind in one namespace and hands each event to `deliver`, on the loop that made this."""

    def __init__(self, access: Access, settings: Settings, deliver: Deliver) -> None:
        self._access = access
        self._settings = settings
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[str] = self._loop.create_future()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)

    async def run(self) -> None:
        """Until cancelled.

        Raises:
            EngineError: kopf ended.
        """
        self._thread.start()
        try:
            why = await asyncio.shield(self._ended)
        finally:
            self._stop.set()
            await asyncio.to_thread(self._thread.join, JOIN_S)
        raise EngineError(why)

    def _run(self) -> None:
        """The thread. What ended kopf is told at once: closing its loop may take long."""
        with asyncio.Runner() as runner:
            runner.run(self._watch())

    async def _watch(self) -> None:
        cause: BaseException | None = None
        try:
            await kopf.operator(
                registry=self._registry(),
                settings=self._kopf_settings(),
                namespaces=[self._settings.namespace],
                standalone=True,
                stop_flag=self._stop,
            )
        except BaseException as error:  # noqa: BLE001 - whatever ends the thread has to be told
            cause = error
        finally:
            self._stop.set()  # kopf waits for this flag in a thread, which closing the loop waits for
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._settle, cause)

    def _settle(self, cause: BaseException | None) -> None:
        why = f"{type(cause).__name__}: {cause}" if cause else "without a reason"
        if not self._ended.done():
            self._ended.set_result(f"the watches ended: {why}")

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        @kopf.on.login(registry=registry)
        async def login(**_: Any) -> kopf.ConnectionInfo:
            return await connection_info(self._access)

        for kind in KINDS:
            kopf.on.event(kind.group, kind.version, kind.plural, registry=registry)(self._handler(kind))
        return registry

    def _handler(self, kind: Kind) -> Callable[..., Any]:
        async def seen(event: Any, **_: Any) -> None:
            if not self._stop.is_set():
                self._loop.call_soon_threadsafe(self._deliver, kind, event["type"], event["object"])

        seen.__name__ = f"see_{kind.plural}"
        return seen

    def _kopf_settings(self) -> kopf.OperatorSettings:
        chosen = kopf.OperatorSettings()
        chosen.process.ultimate_exiting_timeout = None  # else it kills the process ten minutes later
        chosen.persistence.progress_storage = NoProgress()
        chosen.persistence.diffbase_storage = NoDiff()
        chosen.peering.standalone = True
        chosen.posting.enabled = False
        chosen.posting.level = logging.CRITICAL
        chosen.scanning.disabled = True
        chosen.watching.inactivity_timeout = self._settings.watch_silence
        chosen.watching.connect_timeout = 5.0
        chosen.networking.request_timeout = 30.0
        chosen.networking.connect_timeout = 5.0
        chosen.networking.error_backoffs = _Backoffs()
        for kind in KINDS:
            if kind.labelled:
                chosen.watching.label_selectors[kind.group, kind.version, kind.plural] = SELECTOR
        return chosen


async def connection_info(access: Access) -> kopf.ConnectionInfo:
    """The same address and credentials that the other client uses, as they are now."""
    found = await access.configuration()
    return kopf.ConnectionInfo(
        server=found.host,
        ca_path=found.ssl_ca_cert or None,
        insecure=not found.verify_ssl,
        token=bearer(found),
        certificate_path=found.cert_file or None,
        private_key_path=found.key_file or None,
    )
