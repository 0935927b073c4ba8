"""`hack/kube up`, `env` and `down`: a control plane to work with by hand, of which nothing stays behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kubes.places import find
from lab.kube_lab import KubeLab
from standins.fixtures_kube import require_kube

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.kube
HACK = Path(__file__).resolve().parents[2] / "hack"


@pytest.fixture
def kubes(tmp_path: Path) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """`hack/kube` with a cache of its own and the programs of the usual one."""
    require_kube()
    program = find("etcd")
    assert program is not None
    environment = {
        **os.environ,
        "PYTHONPATH": str(HACK),
        "VACANCY_KUBE_CACHE": str(tmp_path),
        "KUBEBUILDER_ASSETS": str(program.parent),
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kubes", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    yield run
    run("down")


def test_up_env_down(kubes: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    assert "nothing is up: hack/kube up" in kubes("env").stderr
    up = kubes("up")
    assert up.returncode == 0, up.stderr
    kubeconfig = Path(up.stdout.strip())
    assert kubes("up").stdout == up.stdout  # the same one
    shell = kubes("env").stdout + "kubectl get namespaces -o name"
    seen = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True, timeout=60)
    assert "namespace/default" in seen.stdout
    assert kubes("down").returncode == 0
    assert not kubeconfig.parent.exists()
    assert "nothing is up" in kubes("down").stderr
    assert not (tmp_path / "up.json").exists()


def test_down_touches_no_process_that_is_not_ours(
    kubes: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Process ids are used again: after a reboot the file names somebody else's."""
    (tmp_path / "data").mkdir()
    state = f'{{"folder": "{tmp_path / "data"}", "kubeconfig": "x", "pids": "{os.getpid()} 1"}}'
    (tmp_path / "up.json").write_text(state)
    assert kubes("down").returncode == 0


def test_a_lab_leaves_nothing_behind() -> None:
    require_kube()
    with KubeLab() as lab:
        folder, pids = lab.folder, (lab.etcd.pid, lab.api.pid)
        assert oct((folder / "admin.kubeconfig").stat().st_mode)[-3:] == "600"
    assert not folder.exists()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
