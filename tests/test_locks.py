"""The committed locks pin everything that pyproject.toml asks for, by hash, and name no index."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
RUNTIME = PROJECT["project"]["dependencies"] + EXTRAS["agent"]
GROUPS = PROJECT["dependency-groups"]
ASKED = {
    "agent": RUNTIME,
    "operator": PROJECT["project"]["dependencies"] + EXTRAS["operator"],
    "try": RUNTIME + GROUPS["parts"],
    "dev": RUNTIME + EXTRAS["operator"] + GROUPS["checks"] + GROUPS["tests"] + GROUPS["parts"],
    "build": PROJECT["build-system"]["requires"] + ["editables"],
}
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)


def entries(name: str) -> list[str]:
    """The logical lines of a lock: a pin with its marker and hashes."""
    text = (ROOT / "requirements" / f"{name}.lock").read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def pins(name: str) -> dict[str, set[str]]:
    """Versions by name: a universal lock may pin one package once per platform."""
    found: dict[str, set[str]] = {}
    for entry in entries(name):
        match = PIN.match(entry)
        assert match is not None, entry
        found.setdefault(canonicalize_name(match[1]), set()).add(match[2])
    return found


@pytest.mark.parametrize("lock", ASKED)
def test_the_lock_satisfies_pyproject(lock: str) -> None:
    pinned = pins(lock)
    asked = [Requirement(text) for text in ASKED[lock]]
    lacking = [str(need) for need in asked if not pinned.get(canonicalize_name(need.name))]
    wrong = [
        f"{need} is pinned to {version}"
        for need in asked
        for version in pinned.get(canonicalize_name(need.name), ())
        if not need.specifier.contains(version, prereleases=True)
    ]
    assert (lacking, wrong) == ([], []), "run hack/lock.sh"


@pytest.mark.parametrize("lock", ASKED)
def test_every_pin_has_its_hashes_and_no_index_is_named(lock: str) -> None:
    assert [entry for entry in entries(lock) if "--hash=sha256:" not in entry] == []
    assert "://" not in (ROOT / "requirements" / f"{lock}.lock").read_text()


@pytest.mark.parametrize("lock", ["agent", "try"])
def test_what_is_tested_is_what_runs(lock: str) -> None:
    tested = pins("dev")
    assert {name: versions for name, versions in pins(lock).items() if tested.get(name) != versions} == {}
