"""The loop: a host is due, what is known of it is decided upon, the plan is carried out.

Invariant: after a plan that did something the host is decided on once more, so a host is left alone only when
there is nothing to do. Writes of our own are no news to the store, so that second look is the last.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from vacancy_api.tokens import new_token
from vacancy_operator.api import ApiError
from vacancy_operator.core.configuration import Configurations
from vacancy_operator.core.facts import Instant, Plan, Policy, Snapshot
from vacancy_operator.core.kinds import LENDING_HOST, HostName, Ref
from vacancy_operator.core.reconcile import decide
from vacancy_operator.log import tell
from vacancy_operator.workqueue import NEVER, WorkQueue
from vacancy_operator.writer import AgainError, StandbyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_operator.clock import Clock
    from vacancy_operator.core.facts import JoinAddress, Now
    from vacancy_operator.metrics import Metrics
    from vacancy_operator.settings import Settings
    from vacancy_operator.store import Store
    from vacancy_operator.writer import Writer

LONGEST_WAIT_S = 60.0


class Controller:
    """Decides on hosts as they become due, while this replica is the active one."""

    def __init__(
        self,
        clock: Clock,
        settings: Settings,
        metrics: Metrics,
        address: JoinAddress,
        contact_since: Callable[[], Instant | None],
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._metrics = metrics
        self._address = address
        self._contact_since = contact_since
        self._queue = WorkQueue(
            debounce=settings.debounce, spacing=settings.spacing, longest_backoff=settings.longest_backoff
        )
        self._known = Configurations()
        self._woken = asyncio.Event()
        self.policy = Policy.UNKNOWN
        self.running = False
        """Whether hosts are decided on; the rest of the process turns it on and off."""

    def changed(self, host: HostName) -> None:
        """Something happened to a host."""
        before = self._queue.next_due()
        self._queue.add(host, self._clock.now().instant)
        if self._queue.next_due() < before:  # else the workers sleep no longer than until then anyway
            self._wake()

    def turn(self, *, running: bool) -> None:
        """Begin to decide, or stop it."""
        self.running = running
        self._wake()

    def recovered(self) -> None:
        """Whatever kept writes from succeeding is over."""
        self._queue.retry_now(self._clock.now().instant)
        self._wake()

    def depth(self) -> int:
        """How many hosts wait for a decision."""
        return self._queue.depth(self._clock.now().instant)

    async def run(self, store: Store, writer: Writer) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._settings.workers):
                group.create_task(self._work(store, writer))

    async def _work(self, store: Store, writer: Writer) -> None:
        while True:
            host = self._queue.pop(self._clock.now().instant) if self.running else None
            if host is None:
                await self._wait()
                continue
            with self._metrics.reconciles.time():
                await self._once(host, store, writer)

    async def _once(self, host: HostName, store: Store, writer: Writer) -> None:
        now = self._clock.now()
        plan = decide(self._snapshot(host, store), now, self._known)
        try:
            await writer.carry_out(host, plan)
        except AgainError:
            self._queue.done(host)
            self.changed(host)
        except StandbyError:
            self._queue.done(host)
        except ApiError as error:
            self._metrics.errors.labels(str(error.status or "unreachable")).inc()
            due = self._queue.failed(host, now.instant)
            tell("not done", host=host, error=error, again_in=f"{due - now.instant:.1f}")
        else:
            self._done(host, plan, store, now)

    def _done(self, host: HostName, plan: Plan, store: Store, now: Now) -> None:
        self._queue.done(host)
        if not plan.empty:
            _tell(host, plan)
            self._queue.add(host, now.instant)
        elif plan.wake_at is not None:
            self._queue.add_at(host, plan.wake_at)
        elif store.get(Ref(LENDING_HOST, host)) is None:
            self._known.forget(host)
            self._queue.forget(host)

    def _snapshot(self, host: HostName, store: Store) -> Snapshot:
        return Snapshot(
            namespace=self._settings.namespace,
            host=store.get(Ref(LENDING_HOST, host)),
            owned=store.owned(host),
            taken=store.taken(host),
            policy=self.policy,
            sight=store.sight(host),
            contact_since=self._contact_since(),
            address=self._address,
            spare=(new_token(), new_token(), new_token()),
        )

    async def _wait(self) -> None:
        due = self._queue.next_due() if self.running else NEVER
        pause = min(LONGEST_WAIT_S, max(0.0, due - self._clock.now().instant))
        try:
            async with asyncio.timeout(pause):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()

    def _wake(self) -> None:
        self._woken.set()


def _tell(host: HostName, plan: Plan) -> None:
    """One line for what was done: names of objects, never what is in them."""
    done = [f"deleted {one['kind']}" for one in plan.delete] + [
        f"applied {one['kind']}" for one in plan.apply
    ]
    done += ["made its token"] if plan.mint else []
    for notice in plan.notices:
        tell(notice.reason, host=host, note=notice.note)
    if done:
        tell("reconciled", host=host, did=", ".join(done))
