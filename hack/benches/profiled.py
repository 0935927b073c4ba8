"""Runs a module under cProfile and writes the profile at its end: `profiled OUTPUT MODULE ARGUMENT...`.

A deterministic profiler inflates small Python functions against work done in C: it shows where calls go; how
fast the agent is, only runs without it tell.
"""

from __future__ import annotations

import cProfile
import runpy
import sys


def main() -> None:
    """The profiled module sees the command line that it would have had."""
    output, module, *arguments = sys.argv[1:]
    sys.argv = [module, *arguments]
    profile = cProfile.Profile()
    try:
        profile.runcall(runpy.run_module, module, run_name="__main__", alter_sys=True)
    finally:
        profile.dump_stats(output)


if __name__ == "__main__":
    main()
