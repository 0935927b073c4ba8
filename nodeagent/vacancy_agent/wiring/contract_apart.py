"""A manifest is judged in a process of its own, which hands the settings over and ends.

Invariant: pydantic, PyYAML and the models of the contract never enter an agent that runs alone. They take
20 MiB for the length of its life, and are needed for half a second of it. What comes back is what
`contract.alone` returns or raises, to the letter. Rejected: JSON between the two, which would be a second
translation of every setting; what is unpickled was written by a child of ours, through a pipe of ours.
"""

from __future__ import annotations

import copyreg
import pickle
import subprocess
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from vacancy_agent.wiring.config import Configuration, RefusedError

if TYPE_CHECKING:
    from vacancy_agent.store.state import Tokens

DEADLINE_S = 60.0
"""It takes half a second, on a machine that is not thrashing."""


class JudgeError(Exception):
    """The manifest could not be judged, right or wrong."""


def judge(manifest: bytes, tokens: Tokens) -> Configuration:
    """What `contract.alone` makes of the manifest. It blocks for as long as Python takes to start, or longer.

    Raises:
        RefusedError: with everything that is wrong with the manifest.
        JudgeError: this machine would not have it judged.
    """
    argv = [sys.executable, "-P", "-c", f"from {__name__} import answer; answer()"]
    try:
        ended = subprocess.run(
            argv,
            input=pickle.dumps((manifest, tokens)),
            capture_output=True,
            timeout=DEADLINE_S,
            start_new_session=True,  # a Ctrl-C at the terminal is the agent's to handle
            check=True,
        )
        verdict = pickle.loads(ended.stdout)  # noqa: S301 - written by the child that we have just started
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise JudgeError(_why(" ".join(last) or f"its process ended with {error.returncode}")) from error
    except (OSError, subprocess.TimeoutExpired, pickle.UnpicklingError, EOFError) as error:
        raise JudgeError(_why(str(error))) from error
    if not isinstance(verdict, Configuration):
        raise RefusedError(verdict)
    return verdict


def _why(detail: str) -> str:
    return f"the manifest could not be judged: {detail}"


def _settled(manifest: bytes, tokens: Tokens) -> Configuration | list[str]:
    from vacancy_agent.wiring.contract import alone  # noqa: PLC0415 - in the child alone

    try:
        return alone(manifest, tokens)
    except RefusedError as error:
        return error.errors


def answer() -> None:
    """The child's part: a question on standard input, the verdict on standard output."""
    copyreg.pickle(MappingProxyType, lambda mapping: (frozen, (dict(mapping),)))
    manifest, tokens = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the agent that started us
    sys.stdout.buffer.write(pickle.dumps(_settled(manifest, tokens)))


def frozen(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    """A mapping as the settings hold it; pickle does not know the type by a name of its own."""
    return MappingProxyType(mapping)
