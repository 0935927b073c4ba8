"""The version of the distribution, for what has no time or memory to look it up in the installed metadata."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
