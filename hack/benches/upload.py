"""One upload, 64 MiB unless told otherwise, from a process of its own: it must not delay the streams' clock.

python -m benches.upload PORT BYTES [TOKEN]
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from typing import TYPE_CHECKING

from benches.parts import LOOPBACK, PartError, python_module

if TYPE_CHECKING:
    from benches.wrk import Target

BODY_BYTES = 64 << 20
DEADLINE_S = 60.0
HEAD, TAIL = b'{"model":"bench","messages":[{"role":"user","content":"', b'"}],"max_tokens":16}'


class UploadError(PartError):
    """The upload was not answered with 200."""


async def upload_once(target: Target, size: int = BODY_BYTES) -> None:
    """Send the body and wait for the answer.

    Raises:
        UploadError: with what was answered.
    """
    arguments = [str(target.port), str(size), *([target.token] if target.token else [])]
    process = await asyncio.create_subprocess_exec(
        *python_module("benches.upload", *arguments), stderr=asyncio.subprocess.PIPE, env=dict(os.environ)
    )
    async with asyncio.timeout(DEADLINE_S):
        _, said = await process.communicate()
    if process.returncode:
        raise UploadError(f"{target.name}: {said.decode(errors='replace')[-500:]}")


def main() -> None:
    """Send, then judge the status line."""
    port, bytes_wanted, *token = sys.argv[1:]
    size = int(bytes_wanted)
    lines = [
        "POST /v1/chat/completions HTTP/1.1",
        f"Host: {LOOPBACK}:{port}",
        "Content-Type: application/json",
        f"Content-Length: {size}",
        "Connection: close",
        *(f"Authorization: Bearer {value}" for value in token),
    ]
    with socket.create_connection((LOOPBACK, int(port)), timeout=DEADLINE_S) as connection:
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        connection.sendall(HEAD + b"x" * (size - len(HEAD) - len(TAIL)) + TAIL)
        answer = connection.recv(4096)
    if b" 200 " not in answer[:16]:
        sys.exit(answer[:500].decode(errors="replace"))


if __name__ == "__main__":
    main()
