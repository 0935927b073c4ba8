"""The recorded answers of two ComfyUI releases (CPU, core nodes), as tests and stand-in replay them."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "comfyui"
OLD, NEW = "0.3.64", "0.28.1"


@lru_cache(maxsize=256)
def recorded(release: str, name: str) -> dict[str, Any]:
    """One exchange: `request` and `response` with `status`, `headers` and `body`."""
    found: dict[str, Any] = json.loads((FOLDER / f"v{release}" / f"{name}.json").read_text())
    return found


def body(release: str, name: str) -> bytes:
    """The body of a recorded answer."""
    text: str = recorded(release, name)["response"]["body"]
    return text.encode()
