"""The tokens that agent and operator make."""

from __future__ import annotations

import secrets

TOKEN_BYTES = 32


def new_token() -> str:
    """A random token of 256 bits; none begins like an option, which `--token -x` would be refused for."""
    while (token := secrets.token_urlsafe(TOKEN_BYTES)).startswith("-"):
        pass
    return token
