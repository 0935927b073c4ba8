"""Builds Ollama. Its module comes without the folders `vendor/`, so three C headers are found elsewhere:

two in Debian packages, and `miniaudio.h` in a Go module that binds the same library.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from golang.compiling import Work, alone, compile_program, enough_disk
from golang.say import BuildError, say
from golang.toolchain import find_go
from ollamas.places import HEADERS, MODULE, PACKAGE, find, folder, version

if TYPE_CHECKING:
    from pathlib import Path

    from golang.toolchain import Go

NEEDED_DISK_BYTES = 3 << 30
WHO = "ollama"
_AUDIO = "github.com/gen2brain/malgo"


def build() -> Path:
    """The program; built where it is not there yet (about 10 minutes on 2 cores, once).

    Raises:
        BuildError: something is missing, or the build failed.
    """
    if find() is None:
        with alone("ollama", WHO):
            if find() is None:
                _build()
    program = find()
    if program is None:
        raise BuildError("VACANCY_OLLAMA names no program that can be run")
    return program


def missing_for_build() -> list[str]:
    """Debian packages without which it cannot be built."""
    absent = [package for package, header in HEADERS.items() if not header.exists()]
    return absent + [tool for tool in ("gcc", "g++") if shutil.which(tool) is None]


def _build() -> None:
    if absent := missing_for_build():
        raise BuildError(f"missing: {', '.join(absent)}; install: apt-get install {' '.join(absent)}")
    enough_disk(NEEDED_DISK_BYTES)
    go = find_go()
    say(f"building {version()} into {folder()}: about 10 minutes when nothing is cached, and only once", WHO)
    flags = f"-s -w -X {PACKAGE}/version.Version={version().removeprefix('v')}"
    environment = {"CGO_ENABLED": "1", "CGO_CPPFLAGS": f"-I{_audio_header(go)}"}
    program = folder() / "ollama"
    compile_program(go, Work(MODULE, PACKAGE, program, flags, WHO, WHO, environment=environment))


def _audio_header(go: Go) -> Path:
    """A directory in which `miniaudio/miniaudio.h` is."""
    _go(go, "mod", "download", _AUDIO)
    include = folder() / "include"
    include.mkdir(parents=True, exist_ok=True)
    link = include / "miniaudio"
    link.unlink(missing_ok=True)
    link.symlink_to(_go(go, "list", "-m", "-f", "{{.Dir}}", _AUDIO).strip())
    return include


def _go(go: Go, *arguments: str) -> str:
    done = subprocess.run(
        [str(go.program), *arguments],
        cwd=MODULE,
        env=go.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuildError(f"go {' '.join(arguments)}: {done.stderr.strip()[-400:]}")
    return done.stdout
