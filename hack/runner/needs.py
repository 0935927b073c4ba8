"""System packages that the tiers use: looked for first, installed only where missing and where we may.

A part that stays missing is no error here: the tests that need it skip with their own reason, and the summary
lists that reason (or fails on it), so there is one place where "could not run" is decided.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Need:
    """A Debian package and how to see whether what it brings is there."""

    package: str
    programs: tuple[str, ...]

    def is_met(self) -> bool:
        """Whether one of the programs is on PATH or, given absolutely, exists."""
        return any(
            Path(name).exists() if name.startswith("/") else shutil.which(name) for name in self.programs
        )


COMPONENT_NEEDS = (
    Need("dbus", ("dbus-daemon",)),
    Need("systemd", ("/lib/systemd/systemd-logind", "/usr/lib/systemd/systemd-logind")),
    Need("util-linux", ("unshare",)),
    Need("git", ("git",)),
)
OLLAMA_NEEDS = (
    Need("gcc", ("gcc",)),
    Need("g++", ("g++",)),
    Need("libc6-dev", ("/usr/include/stdlib.h",)),
    Need("nlohmann-json3-dev", ("/usr/include/nlohmann/json.hpp",)),
    Need("libstb-dev", ("/usr/include/stb/stb_image.h",)),
)
"""What `hack/ollama build` compiles with."""
BENCH_NEEDS = (Need("nginx-light", ("nginx", "/usr/sbin/nginx")), Need("wrk", ("wrk",)))


def missing(needs: tuple[Need, ...]) -> list[str]:
    """Packages of `needs` that are not there."""
    return [need.package for need in needs if not need.is_met()]


def can_install() -> bool:
    """Root on a machine with apt."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install_missing(needs: tuple[Need, ...]) -> list[str]:
    """Install what is missing where we may. Returns the packages that are missing after that."""
    lacking = missing(needs)
    if not lacking or not can_install():
        return lacking
    print(f"installing {' '.join(lacking)} with apt-get", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *lacking],
    ):
        subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False)
    return missing(needs)
