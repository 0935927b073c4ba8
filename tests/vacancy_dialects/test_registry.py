from __future__ import annotations

import pytest

from vacancy_dialects import UnknownDialectError, table_for


@pytest.mark.parametrize("dialect", ["openai", "llamacpp"])
def test_a_dialect_has_one_table(dialect: str):
    assert table_for(dialect).dialect == dialect
    assert table_for(dialect) is table_for(dialect)


@pytest.mark.parametrize("dialect", ["ollama", "comfyui", "chatterbox", "OpenAI", ""])
def test_a_dialect_without_a_table_names_those_there_are(dialect: str):
    with pytest.raises(UnknownDialectError, match=r"this version has llamacpp, openai"):
        table_for(dialect)
