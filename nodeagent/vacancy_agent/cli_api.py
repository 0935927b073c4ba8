"""How the command line reaches the agent's API: address, token, and errors that say what to do."""

from __future__ import annotations

import json
import os
import ssl
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from vacancy_agent.store.state import default_state_dir

if TYPE_CHECKING:
    import argparse

DEFAULT_API = "http://127.0.0.1:8470"
TIMEOUT_S = 10.0
WRONG_INPUT = 400
UNAUTHORIZED = 401
WAYS = "give --state-dir as the agent was given it, --token or $VACANCY_TOKEN, or run as the agent's user"


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
        ApiUnreachableError: nobody answers there, or not as a vacancy agent does.
        ApiRefusedError: the agent refused, or the address or the token cannot be used; the message says why.
    """
    request, base, unauthorized = _prepared(args, method, path, scope=scope, body=body)
    try:
        answer = json.loads(_exchange(request, base, unauthorized))
    except ValueError as error:
        raise _stranger(base) from error
    if not isinstance(answer, dict):
        raise _stranger(base)
    return answer


def fetch(args: argparse.Namespace, path: str, *, scope: str) -> bytes:
    """The bytes of one GET.

    Raises:
        ApiUnreachableError: nobody answers there, or not as a vacancy agent does.
        ApiRefusedError: the agent refused, or the address or the token cannot be used; the message says why.
    """
    request, base, unauthorized = _prepared(args, "GET", path, scope=scope, body=None)
    return _exchange(request, base, unauthorized)


def _prepared(
    args: argparse.Namespace, method: str, path: str, *, scope: str, body: dict[str, Any] | None
) -> tuple[urllib.request.Request, str, str]:
    """The request, the address as given, and what to say where the agent does not let us in."""
    base = _checked_base(args.api or os.environ.get("VACANCY_API") or DEFAULT_API)
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data=data, method=method)  # noqa: S310 - scheme checked
    request.add_header("Accept", "application/json")
    if data is not None:
        request.add_header("Content-Type", "application/json")
    token = find_token(args, scope)
    if token is not None:
        if not (token.isascii() and token.isprintable()):
            raise ApiRefusedError(WRONG_INPUT, "the token has characters that no token has")
        request.add_header("Authorization", f"Bearer {token}")
    told = f"the agent at {base} does not accept this token for it (--api names another agent)"
    return request, base, told if token else f"no token was found in {_tokens_file(args)}"


def find_token(args: argparse.Namespace, scope: str) -> str | None:
    """The token to present: the option, `$VACANCY_TOKEN`, else the agent's own file when we may read it."""
    if args.token or os.environ.get("VACANCY_TOKEN"):
        return args.token or os.environ["VACANCY_TOKEN"]
    try:
        tokens = json.loads(_tokens_file(args).read_text(encoding="utf-8"))
        found = tokens[scope]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def _tokens_file(args: argparse.Namespace) -> Path:
    return Path(args.state_dir or default_state_dir()) / "tokens.json"


def _checked_base(base: str) -> str:
    try:
        url = urlsplit(base)
        good = url.scheme in {"http", "https"} and url.hostname and (url.port is None or url.port > 0)
    except ValueError:
        good = False
    if not good or not base.isascii() or not base.isprintable() or " " in base:
        raise ApiRefusedError(WRONG_INPUT, f"--api must be an http:// or https:// URL, not {base!r}")
    return base.rstrip("/")


def _exchange(request: urllib.request.Request, base: str, unauthorized: str) -> bytes:
    # Proxy settings of the environment are for the internet, not for the agent on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as response:
            content: bytes = response.read()
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(error, base, unauthorized) from error
    except (ValueError, HTTPException) as error:
        raise _stranger(base) from error
    except OSError as error:
        raise ApiUnreachableError(_why(error, base)) from error
    return content


def _refused(error: urllib.error.HTTPError, base: str, unauthorized: str) -> Exception:
    try:
        told = json.loads(error.read())["error"]
        message, is_ours = str(told["message"]), told["type"] == "no_vacancy"
    except (ValueError, KeyError, TypeError, OSError, HTTPException):
        return _stranger(base)
    if not is_ours:
        return _stranger(base)
    if error.code == UNAUTHORIZED:
        return ApiRefusedError(error.code, f"{unauthorized}: {WAYS}")
    return ApiRefusedError(error.code, message)


def _stranger(base: str) -> ApiUnreachableError:
    return ApiUnreachableError(f"what answers at {base} is not a vacancy agent; give --api")


def _why(error: OSError, base: str) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        remedy = "set SSL_CERT_FILE to the certificate of who signed it"
        return f"the certificate of {base} is not trusted ({reason.verify_message}): {remedy}"
    return f"no agent answers at {base} ({reason}); is `vacancy agent` running?"
