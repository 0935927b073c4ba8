"""The replies that are not passed byte for byte.

llama-server in router mode lists its models with the argv and the preset of each: paths, ports and keys of
the owner's. These two are taken out, everything else stays, and a list without them stays byte for byte.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from vacancy_dialects.routes import ReplyRule

MAX_REWRITTEN: Final = 1 << 20
"""Bytes: a reply that has to be rewritten is read whole up to this size, and not passed on above it."""

_LISTS: Final = ("data", "models")
_PRIVATE: Final = ("args", "preset")


class ReplyUnreadableError(ValueError):
    """A successful reply that has to be rewritten is not what it should be, so it must not be passed on."""


def rewrite_reply(rule: ReplyRule, body: bytes) -> bytes:
    """What the borrower gets instead of `body`, the whole body of a reply whose status is 200 to 299.

    Raises:
        ReplyUnreadableError: `body` has to be rewritten and is not JSON.
    """
    if rule is ReplyRule.AS_IS:
        return body
    try:
        listing = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        msg = "the model list is not JSON"
        raise ReplyUnreadableError(msg) from error
    # No short cut through the bytes: a key may be written with escapes.
    cleaned = [_clean(model) for model in _models(listing)]
    return msgspec.json.encode(listing) if any(cleaned) else body


def _models(listing: Any) -> list[dict[str, Any]]:
    lists = [listing.get(name) for name in _LISTS] if isinstance(listing, dict) else []
    return [
        model for models in lists if isinstance(models, list) for model in models if isinstance(model, dict)
    ]


def _clean(model: dict[str, Any]) -> bool:
    """Take the private keys out of a model and its status; True when there were any."""
    holders = [model, model.get("status")]
    found = [
        (holder, key) for holder in holders if isinstance(holder, dict) for key in _PRIVATE if key in holder
    ]
    for holder, key in found:
        del holder[key]
    return bool(found)
