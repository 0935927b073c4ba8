"""`hack/kube`: build the programs; start and end a control plane to work with by hand."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from golang.places import cache
from kubes.build import build
from kubes.places import CONTROL_PLANE, PROGRAMS, find
from kubes.say import KubeError, lasted, say

END_DEADLINE_S = 15.0


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="hack/kube", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    builder = commands.add_parser("build", help="build programs that are not there yet; prints their paths")
    builder.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"default: {' '.join(CONTROL_PLANE)}; of: {' '.join(PROGRAMS)}",
    )
    builder.add_argument("--all", action="store_true", help="all of them, the node's and helm too")
    up = commands.add_parser("up", help="start a control plane; prints its KUBECONFIG")
    up.add_argument("--audit", action="store_true", help="write audit.log beside the kubeconfig")
    commands.add_parser("env", help='prints what `eval "$(hack/kube env)"` needs')
    commands.add_parser("down", help="end the control plane and remove its data")
    return parser.parse_args()


def state_file() -> Path:
    """Where the control plane that is up is written down."""
    return cache() / "up.json"


def state() -> dict[str, str]:
    """What is up; empty where nothing is."""
    with suppress(OSError, ValueError):
        content: dict[str, str] = json.loads(state_file().read_text())
        return content
    return {}


def is_up() -> bool:
    """Whether a control plane that we started still runs."""
    return any(_ours(int(pid), state()["folder"]) for pid in state().get("pids", "").split())


def up(*, audit: bool) -> None:
    """Start one, unless one runs."""
    if not is_up():
        build(CONTROL_PLANE)
        from lab.kube_lab import KubeLab  # it looks for the programs when it is imported nowhere else

        started = time.monotonic()
        lab = KubeLab(audit=audit, detached=True, folder=Path(tempfile.mkdtemp(prefix="vacancy-kube-")))
        lab.start()
        state_file().write_text(
            json.dumps(
                {
                    "folder": str(lab.folder),
                    "kubeconfig": str(lab.kubeconfig),
                    "pids": f"{lab.etcd.pid} {lab.api.pid}",
                }
            )
        )
        say(f"up in {lasted(time.monotonic() - started)}: {lab.server}; hack/kube down ends it")
    print(state()["kubeconfig"])


def env() -> None:
    """Lines for a shell."""
    if not is_up():
        raise KubeError("nothing is up: hack/kube up")
    kubectl = find("kubectl")
    print(f"export KUBECONFIG={shlex.quote(state()['kubeconfig'])}")
    if kubectl is not None:
        print(f"export PATH={shlex.quote(str(kubectl.parent))}:$PATH")


def down() -> None:
    """End it; nothing that is not ours is touched."""
    now = state()
    if not now:
        say("nothing is up")
        return
    pids = [pid for pid in map(int, now["pids"].split()) if _ours(pid, now["folder"])]
    for pid in reversed(pids):
        os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + END_DEADLINE_S
    while any(_ours(pid, now["folder"]) for pid in pids) and time.monotonic() < end:
        time.sleep(0.1)
    for pid in pids:
        if _ours(pid, now["folder"]):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(now["folder"], ignore_errors=True)
    state_file().unlink()
    say("down")


def _ours(pid: int, folder: str) -> bool:
    """Whether the process still is the one that we started: process ids are used again."""
    with suppress(OSError):
        return folder.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def chosen(options: argparse.Namespace) -> list[str]:
    """The programs to build."""
    unknown = [name for name in options.names if name not in PROGRAMS]
    if unknown:
        raise KubeError(f"no such program: {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    return list(PROGRAMS) if options.all else options.names or list(CONTROL_PLANE)


def main() -> int:
    """Exit code: 0 done, 1 not."""
    options = parse()
    try:
        match options.command:
            case "build":
                for path in build(chosen(options)).values():
                    print(path)
            case "up":
                up(audit=options.audit)
            case "env":
                env()
            case _:
                down()
    except KubeError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
