"""`hack/ollama`: build it; run it with a model of random weights."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys

from golang.say import BuildError, say
from ollamas.build import WHO, build


def main() -> int:
    """Exit code: 0 done, 1 not."""
    parser = argparse.ArgumentParser(prog="hack/ollama", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build it unless it is there; prints its path")
    run = commands.add_parser("run", help="start a server and keep it until interrupted; prints its address")
    run.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    try:
        program = build()
    except BuildError as error:
        say(str(error), WHO)
        return 1
    if options.command == "build":
        print(program)
        return 0
    from lab.ollama_lab import ollama_server

    with ollama_server(port=options.port) as lab, contextlib.suppress(KeyboardInterrupt):
        print(lab.url, flush=True)
        signal.pause()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
