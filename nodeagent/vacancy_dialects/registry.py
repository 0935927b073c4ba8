"""The dialects there are."""

from __future__ import annotations

from typing import Final

from vacancy_dialects import chatterbox, comfyui, llamacpp, ollama, openai
from vacancy_dialects.table import RouteTable

_TABLES: Final = {
    "ollama": RouteTable("ollama", ollama.ROWS),
    "openai": RouteTable("openai", openai.ROWS),
    "llamacpp": RouteTable("llamacpp", llamacpp.ROWS),
    "comfyui": RouteTable("comfyui", comfyui.ROWS),
    "chatterbox": RouteTable("chatterbox", chatterbox.ROWS),
}


class UnknownDialectError(LookupError):
    """No route table for this dialect."""


def table_for(dialect: str) -> RouteTable:
    """The route table of `dialect`.

    Raises:
        UnknownDialectError: This version has no table for it; nothing can be lent through it.
    """
    try:
        return _TABLES[dialect]
    except KeyError:
        known = ", ".join(sorted(_TABLES))
        msg = f"no route table for dialect {dialect!r}; this version has {known}"
        raise UnknownDialectError(msg) from None
