"""How the command line reaches the agent's API: address, token, and errors that say what to do."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from vacancy_agent.store.state import default_state_dir

if TYPE_CHECKING:
    import argparse

DEFAULT_API = "http://127.0.0.1:8470"
TIMEOUT_S = 10.0


class ApiUnreachableError(Exception):
    """No answer from the agent, or none that can be read."""


class ApiRefusedError(Exception):
    """The agent answered, and said no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def segment(text: str) -> str:
    """`text` as one segment of a path."""
    return quote(text, safe="")


def call(
    args: argparse.Namespace, method: str, path: str, *, scope: str, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    """One call to the agent's API.

    Raises:
        ApiUnreachableError: nobody answers there, or not with JSON.
        ApiRefusedError: the agent refused; the message is its own.
    """
    base = args.api or os.environ.get("VACANCY_API") or DEFAULT_API
    if urlsplit(base).scheme not in {"http", "https"}:
        raise ApiRefusedError(400, f"--api must be an http:// or https:// URL, not {base!r}")
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base.rstrip("/") + path, data=data, method=method)  # noqa: S310 - scheme checked
    request.add_header("Accept", "application/json")
    if data is not None:
        request.add_header("Content-Type", "application/json")
    token = find_token(args, scope)
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    return _exchange(request, base)


def find_token(args: argparse.Namespace, scope: str) -> str | None:
    """The token to present: the option, `$VACANCY_TOKEN`, else the agent's own file when we may read it."""
    if args.token or os.environ.get("VACANCY_TOKEN"):
        return args.token or os.environ["VACANCY_TOKEN"]
    file = Path(args.state_dir or default_state_dir()) / "tokens.json"
    try:
        tokens = json.loads(file.read_text(encoding="utf-8"))
        found = tokens[scope]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def _exchange(request: urllib.request.Request, base: str) -> dict[str, Any]:
    # Proxy settings of the environment are for the internet, not for the agent on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as response:
            answer = json.loads(response.read())
    except urllib.error.HTTPError as error:
        raise ApiRefusedError(error.code, _message_of(error)) from error
    except (OSError, ValueError) as error:
        raise ApiUnreachableError(
            f"no agent answers at {base} ({error}); is `vacancy agent` running?"
        ) from error
    if not isinstance(answer, dict):
        raise ApiUnreachableError(f"what answers at {base} is not a vacancy agent")
    return answer


def _message_of(error: urllib.error.HTTPError) -> str:
    try:
        message = json.loads(error.read())["error"]["message"]
    except (ValueError, KeyError, TypeError, OSError):
        message = f"the agent answered {error.code} {error.reason}"
    if error.code == 401:  # noqa: PLR2004 - HTTP's own number
        return f"{message}; give --token, $VACANCY_TOKEN, or run as the user who runs the agent"
    return str(message)
