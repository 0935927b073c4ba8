"""The layout and its sizes are promises to the reader: this file holds the tree to them."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
SOURCE_ROOTS = ("crds", "nodeagent", "operator")
CAP_LINES = 400
GENERATED = ("requirements/", "tests/fixtures/", "crds/vacancy.dev_")

# Spelled so that this file does not contain what it looks for.
REGISTRY_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("crates", "io"),
        ("proxy.golang", "org"),
        ("sum.golang", "org"),
        ("repo1.maven", "org"),
        ("deb.debian", "org"),
    )
]
MACHINE_PATH = re.compile(rb"(?<![\w.~$}>-])/(?:root|tmp|work|Users/\w+)(?:/|[\"'`\s]|$)", re.MULTILINE)


def tracked_files() -> list[Path]:
    """Files that are, or are about to be, in the repository; every file where there is no repository."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = listing.stdout.decode().split("\0")
    return [path for name in names if name and (path := ROOT / name).is_file() and not path.is_symlink()]


def packages() -> list[Path]:
    return sorted(
        init.parent for root in SOURCE_ROOTS for init in (ROOT / root).glob("*/__init__.py") if init.is_file()
    )


def source_files() -> list[Path]:
    return sorted(path for package in packages() for path in package.rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def expected_test(source: Path) -> Path:
    package_root = next(package.parent for package in packages() if source.is_relative_to(package))
    inside = source.relative_to(package_root)
    return ROOT / "tests" / inside.with_name(f"test_{inside.name}")


def functions() -> Iterator[tuple[str, int]]:
    """Each function of the packages with its lines, signature included and docstring left out."""
    for path in source_files():
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{relative(path)}:{node.name}", lines_of(node)


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    lines = node.end_lineno - node.lineno + 1
    if ast.get_docstring(node, clean=False) is not None:
        docstring = node.body[0]
        assert docstring.end_lineno is not None
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines


def test_every_source_file_has_its_test_file() -> None:
    sources = [path for path in source_files() if path.name not in {"__init__.py", "__main__.py"}]
    lacking = [relative(expected_test(source)) for source in sources if not expected_test(source).is_file()]
    assert lacking == []


def test_every_mirrored_test_file_has_its_source_file() -> None:
    known = {expected_test(source) for source in source_files()}
    mirrored = [
        path
        for package in packages()
        for path in (ROOT / "tests" / package.name).rglob("test_*.py")
        if path.is_file()
    ]
    assert [relative(path) for path in mirrored if path not in known] == []


def test_test_directories_have_no_package_marker() -> None:
    markers = [
        path for package in packages() for path in (ROOT / "tests" / package.name).rglob("__init__.py")
    ]
    assert markers == []


@pytest.mark.parametrize("name", ["operator/__init__.py", "tests/operator"])
def test_nothing_shadows_the_standard_library(name: str) -> None:
    assert not (ROOT / name).exists()


def test_no_file_is_over_the_cap() -> None:
    code = [path for path in tracked_files() if not relative(path).startswith(GENERATED) and is_code(path)]
    sizes = {relative(path): path.read_bytes().count(b"\n") for path in code}
    assert {name: lines for name, lines in sizes.items() if lines > CAP_LINES} == {}


def is_code(path: Path) -> bool:
    return path.suffix in {".py", ".sh"} or path.read_bytes().startswith(b"#!")


def test_files_are_short() -> None:
    sizes = [path.read_bytes().count(b"\n") for path in source_files() if path.name != "__init__.py"]
    assert statistics.median(sizes) <= 150


def test_functions_are_short() -> None:
    sizes = sorted(lines for _, lines in functions())
    longest = sorted(functions(), key=lambda item: -item[1])[:10]
    assert statistics.median(sizes) <= 9
    assert sizes[int(len(sizes) * 0.9)] <= 35, f"the longest: {longest}"


def test_no_registry_host_and_no_path_of_a_machine() -> None:
    names = [*REGISTRY_HOSTS, *([f"{Path.home()}/"] if Path.home() != Path("/") else [])]
    named = re.compile("|".join(map(re.escape, names)).encode())
    found = []
    for path in tracked_files():
        content = path.read_bytes()
        if b"\0" in content[:4096]:
            continue
        found += [
            f"{relative(path)}: {match.group().decode()!r}"
            for pattern in (named, MACHINE_PATH)
            for match in pattern.finditer(content)
        ]
    assert found == []
