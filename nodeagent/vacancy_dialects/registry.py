"""The dialects there are."""

from __future__ import annotations

from functools import cache
from typing import Final

from vacancy_dialects import chatterbox, comfyui, llamacpp, ollama, openai
from vacancy_dialects.table import RouteTable

_ROWS: Final = {
    "ollama": ollama.ROWS,
    "openai": openai.ROWS,
    "llamacpp": llamacpp.ROWS,
    "comfyui": comfyui.ROWS,
    "chatterbox": chatterbox.ROWS,
}


class UnknownDialectError(LookupError):
    """No route table for this dialect."""


@cache
def table_for(dialect: str) -> RouteTable:
    """The route table of `dialect`, made when it is asked for: a machine rarely lends all of them.

    Raises:
        UnknownDialectError: This version has no table for it; nothing can be lent through it.
    """
    try:
        return RouteTable(dialect, _ROWS[dialect])
    except KeyError:
        known = ", ".join(sorted(_ROWS))
        msg = f"no route table for dialect {dialect!r}; this version has {known}"
        raise UnknownDialectError(msg) from None
