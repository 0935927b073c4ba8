"""The answer of a server that is to be a JSON object."""

from __future__ import annotations

import json
from typing import Any


def json_object(body: bytes, path: str, error: type[Exception]) -> dict[str, Any]:
    """What `path` answered, decoded.

    Raises:
        error: it is no JSON, or no object.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as fault:
        raise error(f"{path} is no JSON") from fault
    if not isinstance(document, dict):
        raise error(f"{path} is no object")
    return document
