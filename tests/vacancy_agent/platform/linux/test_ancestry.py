from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from standins.gpu_tree import GpuTree
from vacancy_agent.core.facts import ProcessIdentity
from vacancy_agent.platform.linux.ancestry import Ancestry
from vacancy_agent.upstreams.process import started_at

if TYPE_CHECKING:
    from pathlib import Path

NONE: frozenset[str] = frozenset()


@pytest.fixture
def tree(tmp_path: Path) -> GpuTree:
    """100 serves; 101 and 102 are below it; 200 is the owner's."""
    tree = GpuTree(tmp_path)
    tree.process(100, parent=1, started=50)
    tree.process(101, parent=100, started=60)
    tree.process(102, parent=101, started=70, name="a) S 1 (b")
    tree.process(200, parent=1, started=80)
    return tree


def look(tree: GpuTree, **roots: tuple[int, float]) -> Ancestry:
    return Ancestry({name: ProcessIdentity(pid, at) for name, (pid, at) in roots.items()}, tree.proc)


@pytest.mark.parametrize(
    ("pids", "upstreams"),
    [
        ([100], {"llm"}),
        ([102], {"llm"}),
        ([101, 102], {"llm"}),
        ([200], set()),
        ([102, 200], set()),
        ([999], set()),
        ([], set()),
    ],
)
def test_all_that_hold_it_must_be_below_the_server(
    tree: GpuTree, pids: list[int], upstreams: set[str]
) -> None:
    assert look(tree, llm=(100, 50.0)).upstreams_of(pids) == upstreams


def test_a_number_that_was_given_anew_is_another_process(tree: GpuTree) -> None:
    assert look(tree, llm=(100, 49.0)).upstreams_of([102]) == NONE


def test_one_server_may_serve_several_upstreams(tree: GpuTree) -> None:
    two = look(tree, a=(100, 50.0), b=(100, 50.0), c=(200, 80.0))
    assert two.upstreams_of([101]) == {"a", "b"}
    assert two.upstreams_of([200]) == {"c"}


def test_a_child_whose_parent_ended_belongs_to_nobody(tree: GpuTree) -> None:
    tree.process(102, parent=1, started=70)
    assert look(tree, llm=(100, 50.0)).upstreams_of([102]) == NONE


def test_a_circle_ends(tree: GpuTree) -> None:
    tree.process(300, parent=301)
    tree.process(301, parent=300)
    assert look(tree, llm=(100, 50.0)).upstreams_of([300]) == NONE


def test_without_a_server_nobody_is_looked_at(tmp_path: Path) -> None:
    assert Ancestry({}, tmp_path / "no proc at all").upstreams_of([1]) == NONE


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_real_processes_are_found_to_belong_to_their_server() -> None:
    """A server with a runner below it, as Ollama has one, and somebody else's program beside them."""
    nest = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    server = subprocess.Popen([sys.executable, "-c", nest], stdin=subprocess.PIPE)
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        top = psutil.Process(server.pid)
        deadline = time.monotonic() + 30
        while not (children := top.children()) and time.monotonic() < deadline:
            time.sleep(0.01)
        (runner,) = children
        roots = {"llm": ProcessIdentity(server.pid, started_at(top))}
        looked = Ancestry(roots)
        assert looked.upstreams_of([runner.pid]) == looked.upstreams_of([server.pid]) == {"llm"}
        assert looked.upstreams_of([other.pid]) == looked.upstreams_of([os.getpid()]) == NONE
        assert Ancestry({"llm": ProcessIdentity(server.pid, 1.0)}).upstreams_of([runner.pid]) == NONE
    finally:
        for process in (server, other):
            process.communicate(b"\n", timeout=30)
