"""What a control plane was asked: the API server's audit log, one line a request."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. `verb` is the API server's word: get, list, watch, create, update, patch, delete."""

    user: str
    verb: str
    resource: str
    """With its subresource: `lendinghosts/status`."""
    namespace: str
    name: str
    code: int
    agent: str
    """User-Agent of the client."""


class Count(NamedTuple):
    """Key of the counts."""

    user: str
    verb: str
    resource: str


class AuditLog:
    """Reads the log of one API server. A position is what `here` returns, for "since then"."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def here(self) -> int:
        """The end of the log now."""
        return self.path.stat().st_size if self.path.exists() else 0

    def requests(self, since: int = 0) -> Iterator[Asked]:
        """Each request once; one that lasts (a watch) counts from its start."""
        if not self.path.exists():
            return
        seen: set[str] = set()
        with self.path.open("rb") as log:
            log.seek(since)
            for line in log:
                if not line.endswith(b"\n"):
                    return
                event = json.loads(line)
                if event["auditID"] not in seen:
                    seen.add(event["auditID"])
                    yield _asked(event)

    def counts(self, since: int = 0, *, writes_only: bool = False) -> Counter[Count]:
        """How often each user did what to which resource."""
        return Counter(
            Count(asked.user, asked.verb, asked.resource)
            for asked in self.requests(since)
            if not writes_only or asked.verb in WRITES
        )


def _asked(event: dict[str, object]) -> Asked:
    thing = event.get("objectRef")
    user, status = event["user"], event.get("responseStatus")
    assert isinstance(user, dict)
    ref = thing if isinstance(thing, dict) else {}
    return Asked(
        user=user.get("username", ""),
        verb=str(event["verb"]),
        resource="/".join(part for part in (ref.get("resource"), ref.get("subresource")) if part),
        namespace=ref.get("namespace", ""),
        name=ref.get("name", ""),
        code=status.get("code", 0) if isinstance(status, dict) else 0,
        agent=str(event.get("userAgent", "")),
    )
