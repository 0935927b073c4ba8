"""Documentation that names what does not exist is worse than none."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
REPOSITORY_PATH = re.compile(r"`((?:hack|tests|docs|crds|nodeagent|charts|requirements|\.ci)/[\w./-]+)[^`]*`")
FIGURE = re.compile(r"`([a-z0-9_]+)`")


def names(paths: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in paths]


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_links_lead_somewhere(page: Path) -> None:
    targets = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in targets if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_paths_that_are_named_exist(page: Path) -> None:
    assert [path for path in REPOSITORY_PATH.findall(page.read_text()) if not (ROOT / path).exists()] == []


def test_decisions_are_numbered_without_gaps() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))


@pytest.mark.parametrize("decision", DECISIONS, ids=names(DECISIONS))
def test_a_decision_says_what_why_and_what_instead(decision: Path) -> None:
    title, _, *lines = decision.read_text().splitlines()
    assert title.startswith(f"# {int(decision.name[:4])}. ")
    assert [line.split(":")[0] for line in lines] == ["- Decision", "- Why", "- Rejected"]


def test_every_runtime_dependency_has_its_decision() -> None:
    text = " ".join(path.read_text().lower() for path in DECISIONS)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = [
        Requirement(text) for text in project["dependencies"] + project["optional-dependencies"]["agent"]
    ]
    wanted = [need.name for need in needs if need.name != "tzdata"]
    assert [name for name in wanted if name not in text] == []


def test_every_figure_of_the_benchmarks_is_explained() -> None:
    explained = set(FIGURE.findall((ROOT / "docs" / "performance.md").read_text()))
    figures: set[str] = set()
    for source in (ROOT / "hack" / "benches").glob("*.py"):
        figures |= set(re.findall(r'\.(?:add|miss)\(\s*f?"([a-z0-9_]+)"', source.read_text()))
    assert figures - explained == set()
