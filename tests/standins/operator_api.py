"""An API server in a dictionary, with the face of `vacancy_operator.api.Api`, and a clock moved by hand."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from standins.operator_world import EPOCH, service_token
from vacancy_operator.api import ApiError
from vacancy_operator.core.facts import Instant, Now, Wall
from vacancy_operator.core.kinds import SELECTOR, SERVICE_ACCOUNT, Kind, Object, Ref, metadata, uid, version

if TYPE_CHECKING:
    from collections.abc import Callable


class HandClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> Now:
        return Now(Instant(1000.0 + self.seconds), Wall(EPOCH + self.seconds))


class LoopClock:
    """The clock of the loop that runs, which looptime drives."""

    def now(self) -> Now:
        seconds = asyncio.get_running_loop().time()
        return Now(Instant(1000.0 + seconds), Wall(EPOCH + seconds))


class DictApi:
    """Keeps objects and a log of what was asked. `fail` is asked before each call."""

    def __init__(self) -> None:
        self.namespace = "lending"
        self.objects: dict[Ref, dict[str, Any]] = {}
        self.paths: dict[str, Object] = {}
        self.calls: list[str] = []
        self.version = 100
        self.token_age = 0.0
        """Of the tokens it gives: how far its clock is off."""
        self.fail: Callable[[str], ApiError | None] = lambda _: None

    def put(self, kind: Kind, item: Object) -> dict[str, Any]:
        """Somebody else writes."""
        self.version += 1
        name = metadata(item).get("name") or f"{metadata(item)['generateName']}{self.version}"
        ref = Ref(kind, str(name))
        before = self.objects.get(ref)
        about = {**metadata(item), "name": name, "resourceVersion": str(self.version)}
        about["uid"] = (before and before["metadata"]["uid"]) or about.get("uid") or f"uid-{self.version}"
        self.objects[ref] = {**item, "metadata": about}
        return self.objects[ref]

    def _log(self, what: str) -> None:
        self.calls.append(what)
        error = self.fail(what)
        if error is not None:
            raise error

    def writes(self) -> list[str]:
        return [call for call in self.calls if not call.startswith(("get", "list", "read"))]

    async def get(self, ref: Ref) -> Object | None:
        self._log(f"get {ref}")
        return self.objects.get(ref)

    async def read(self, path: str) -> Object | None:
        self._log(f"read {path}")
        return self.paths.get(path)

    async def list(self, kind: Kind) -> tuple[list[Object], int]:
        self._log(f"list {kind.name}")
        key, value = SELECTOR.split("=")
        found = [item for ref, item in self.objects.items() if ref.kind == kind]
        labelled = [item for item in found if (metadata(item).get("labels") or {}).get(key) == value]
        return list(labelled if kind.labelled else found), self.version

    async def apply(self, kind: Kind, item: Object, subresource: str = "") -> Object:
        ref = Ref(kind, str(metadata(item)["name"]))
        self._log(f"apply {ref}{'/' + subresource if subresource else ''}")
        live = self.objects.get(ref, {})
        said = metadata(item).get("resourceVersion")
        if said and (not live or said != live["metadata"]["resourceVersion"]):
            raise ApiError(409 if live else 404, "not that one")
        status = {**live.get("status", {}), **item["status"]} if "status" in item else live.get("status")
        merged = {**live, **item, "metadata": {**live.get("metadata", {}), **metadata(item)}}
        return self.put(kind, {**merged, "status": status} if status is not None else merged)

    async def create(self, kind: Kind, item: Object) -> Object:
        self._log(f"create {kind.name}")
        if Ref(kind, str(metadata(item).get("name"))) in self.objects:
            raise ApiError(409, "there already")
        return self.put(kind, item)

    async def replace(self, kind: Kind, item: Object) -> Object:
        ref = Ref(kind, str(metadata(item)["name"]))
        self._log(f"replace {ref}")
        live = self.objects.get(ref)
        if live is None or version(live) != version(item):
            raise ApiError(409, "changed")
        return self.put(kind, item)

    async def delete(self, kind: Kind, item: Object) -> None:
        ref = Ref(kind, str(metadata(item)["name"]))
        self._log(f"delete {ref}")
        live = self.objects.get(ref)
        if live is not None and uid(live) != uid(item):
            raise ApiError(409, "another one")
        self.objects.pop(ref, None)

    async def token(self, account: str, secret: Object, seconds: int) -> str:
        self._log(f"token {account}")
        issued = EPOCH + self.token_age
        return service_token(uid(self.objects[Ref(SERVICE_ACCOUNT, account)]), uid(secret), issued, seconds)
