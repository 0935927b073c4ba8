from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from vacancy_api.spec_upstreams import DialectName
from vacancy_dialects import UnknownDialectError, table_for

DIALECTS = get_args(DialectName)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_has_one_table(dialect: str):
    assert table_for(dialect).dialect == dialect
    assert table_for(dialect) is table_for(dialect)


@pytest.mark.parametrize("dialect", ["Ollama", "OpenAI", ""])
def test_a_dialect_without_a_table_names_those_there_are(dialect: str):
    with pytest.raises(
        UnknownDialectError, match=r"this version has chatterbox, comfyui, llamacpp, ollama, openai"
    ):
        table_for(dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_page_for_borrowers_lists_every_route_and_no_other(dialect: str):
    page = (Path(__file__).resolve().parents[2] / "docs" / "routes.md").read_text()
    section = page.split(f"\n## {dialect}\n")[1].split("\n## ")[0]
    table = "\n".join(line for line in section.splitlines() if line.startswith("| "))
    assert set(re.findall(r"`(/[^`]*)`", table)) == {row.path for row in table_for(dialect).rows}
