"""docs/manifest.md says of every field what the models say, and nothing of fields that are not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from vacancy_api.lending_host import LendingHostSpec
from vacancy_api.wording import json_names, submodel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel

DOC = Path(__file__).parents[1] / "docs" / "manifest.md"


def rows(model: type[BaseModel], above: str) -> Iterator[tuple[str, str]]:
    for name, info in json_names(model).items():
        path = f"{above}.{name}"
        inner = submodel(info.annotation)
        several = "[]" if "list[" in str(info.annotation) else ""
        need = "required" if info.is_required() else ""
        yield path, f"| `{path}{several}` | {need} | {info.description} |"
        if inner is not None:
            yield from rows(inner, path + several)


def test_every_field_has_its_row() -> None:
    text = DOC.read_text(encoding="utf-8")
    missing = [row for _, row in rows(LendingHostSpec, "spec") if row not in text]
    assert not missing, "docs/manifest.md lacks these rows:\n" + "\n".join(missing)


def test_no_row_names_a_field_that_is_gone() -> None:
    known = {path for path, _ in rows(LendingHostSpec, "spec")}
    named = re.findall(r"^\| `(spec[^`]*?)(?:\[\])?` \|", DOC.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(named) <= known
