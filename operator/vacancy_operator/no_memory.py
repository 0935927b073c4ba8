"""kopf's two memories, switched off: what it did about an object, and what the object was like then.

Invariant: nothing is remembered on an object, and nothing is computed for that. By default kopf copies every
object four times an event to find out what changed for handlers that we do not have: half of its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kopf

if TYPE_CHECKING:
    from collections.abc import Iterable


class NoProgress(kopf.ProgressStorage):
    """No handler of ours has any progress."""

    def fetch(self, *, key: Any, body: kopf.Body) -> None:
        """Nothing was kept."""

    def store(self, *, key: Any, record: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        """Keep nothing."""

    def purge(self, *, key: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        """There is nothing to remove."""

    def touch(self, *, body: kopf.Body, patch: kopf.Patch, value: str | None) -> None:
        """Never mark an object as seen."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """As it is: nothing of ours is in it."""
        return essence


class NoDiff(kopf.DiffBaseStorage):
    """No handler of ours asks what changed."""

    def build(
        self,
        *,
        body: kopf.Body,  # noqa: ARG002 - kopf's signature
        extra_fields: Iterable[Any] | None = None,  # noqa: ARG002 - the same
    ) -> kopf.BodyEssence:
        """The same for every object, so that nothing ever differs."""
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:  # noqa: ARG002 - kopf's signature
        """Nothing was kept."""
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Keep nothing."""
