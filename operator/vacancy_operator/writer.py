"""Carries a plan out. Nobody else writes to the API server about a host.

Invariant: an object that we have not seen is asked for before anything of its name is made. It may be ours
with its label taken off (its tokens must be kept) or somebody else's (it must be left alone); the store sees
labelled objects only and knows neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vacancy_operator.api import ApiError
from vacancy_operator.core.kinds import (
    FIELD_MANAGER,
    KINDS,
    LENDING_HOST,
    MANAGED_BY,
    SECRET,
    SERVICE_ACCOUNT,
    HostName,
    Kind,
    Names,
    Object,
    Ref,
    metadata,
    version,
)
from vacancy_operator.core.objects import token_is_due
from vacancy_operator.core.tokens import encoded

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_operator.api import Api
    from vacancy_operator.clock import Clock
    from vacancy_operator.core.facts import Mint, Plan
    from vacancy_operator.recorder import Recorder
    from vacancy_operator.store import Store

_KINDS: dict[str, Kind] = {kind.name: kind for kind in KINDS}


class StandbyError(Exception):
    """This replica ceased to be the active one; the other does the rest."""


class AgainError(Exception):
    """The store knows more now than the plan did: decide again."""


class Writer:
    """One for the process."""

    def __init__(
        self,
        api: Api,
        store: Store,
        clock: Clock,
        recorder: Recorder,
        may_write: Callable[[], bool],
        token_life: int,
    ) -> None:
        """`may_write` is asked before every single write."""
        self._clock = clock
        self._api = api
        self._store = store
        self._recorder = recorder
        self._may_write = may_write
        self._token_life = token_life

    async def carry_out(self, name: HostName, plan: Plan) -> None:
        """All of a plan; the status is told even where an object could not be made.

        Raises:
            ApiError: Something was refused or did not arrive.
            AgainError: The plan was made without knowing something.
            StandbyError: This replica may not write any more.
        """
        failure: ApiError | None = None
        try:
            await self._objects(name, plan)
        except ApiError as error:
            failure = error
        if plan.confirm_lease:
            await self._confirm(name)
        if plan.status is not None:
            await self._status(plan)
        if failure is not None:
            raise failure

    async def _objects(self, name: HostName, plan: Plan) -> None:
        for item in plan.delete:
            await self._delete(item)
        for item in plan.apply:
            await self._apply(name, item)
        if plan.mint is not None:
            await self._mint(plan.mint)

    async def _delete(self, item: Object) -> None:
        self._ask()
        ref = ref_of(item)
        try:
            await self._api.delete(ref.kind, item)
        except ApiError as error:
            if not error.conflict:  # another one bears that name by now
                raise
            await self._refresh(ref)
            raise AgainError from error
        self._store.remove(ref, version(item) + 1, own=True)

    async def _apply(self, name: HostName, item: Object) -> None:
        ref = ref_of(item)
        if self._store.get(ref) is None:
            live = await self._api.get(ref)
            if live is not None:
                self._meet(name, ref, live)
                raise AgainError
        self._ask()
        self._store.put(ref.kind, await self._api.apply(ref.kind, item), own=True)

    def _meet(self, name: HostName, ref: Ref, live: Object) -> None:
        """An object that the store did not know."""
        if is_ours(live, name):
            self._store.put(ref.kind, live, own=True)
        else:
            self._store.take_name(name, ref)

    async def _mint(self, mint: Mint) -> None:
        ref = ref_of(mint.secret)
        live = self._store.get(ref)
        if live is None:
            raise AgainError
        self._ask()
        token = await self._api.token(mint.account, live, self._token_life)
        data: dict[str, Any] = {**mint.secret["data"], **encoded({"token": token})}
        self._ask()
        made = await self._api.apply(SECRET, {**mint.secret, "data": data})
        self._store.put(SECRET, made, own=True)
        account = self._store.get(Ref(SERVICE_ACCOUNT, mint.account)) or {}
        if token_is_due(made, account, self._clock.now().wall):
            raise ApiError(None, f"a new token of {mint.account} is due at once: is a clock wrong?")

    async def _confirm(self, name: HostName) -> None:
        await self._refresh(Names.of(name).lease)
        self._store.confirm(name)

    async def _status(self, plan: Plan) -> None:
        assert plan.status is not None  # noqa: S101 - the caller looked
        self._ask()
        ref = ref_of(plan.status)
        try:
            host = await self._api.apply(LENDING_HOST, plan.status, "status")
        except ApiError as error:
            if not (error.conflict or error.missing):
                raise
            await self._refresh(ref)
            raise AgainError from error
        self._store.put(LENDING_HOST, host, own=True)
        for notice in plan.notices:
            await self._recorder.post(host, notice)

    async def _refresh(self, ref: Ref) -> None:
        """What the API server itself says of one object."""
        before = self._store.get(ref)
        live = await self._api.get(ref)
        if live is not None:
            self._store.put(ref.kind, live, own=True)
        elif before is not None:
            self._store.remove(ref, version(before) + 1, own=True)

    def _ask(self) -> None:
        if not self._may_write():
            raise StandbyError


def is_ours(live: Object, host: HostName) -> bool:
    """Whether we made an object: it bears our label, or names the host as its owner."""
    about = metadata(live)
    owners = about.get("ownerReferences") or []
    return (about.get("labels") or {}).get(MANAGED_BY) == FIELD_MANAGER or any(
        one.get("kind") == LENDING_HOST.name and one.get("name") == host for one in owners
    )


def ref_of(item: Object) -> Ref:
    """Where an object is."""
    return Ref(_KINDS[str(item["kind"])], str(metadata(item)["name"]))
