"""Does a live object already say what it should?

Invariant: what the API server adds (defaults, other people's labels, managed fields) is no difference, so an
object that was applied once is never applied again. Lists are compared whole, except owner references,
where others may stand beside ours. Rejected: a digest in an annotation, which is blind to an edit by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MERGED = ("ownerReferences",)


def differs(desired: Any, live: Any) -> bool:
    """Whether `live` lacks or contradicts anything that `desired` says."""
    if isinstance(desired, Mapping):
        return not isinstance(live, Mapping) or any(
            _lacks_reference(value, live.get(key)) if key in _MERGED else differs(value, live.get(key))
            for key, value in desired.items()
        )
    return bool(desired != live)


def _lacks_reference(desired: list[Any], live: Any) -> bool:
    there = live if isinstance(live, list) else []
    return any(all(differs(reference, other) for other in there) for reference in desired)
