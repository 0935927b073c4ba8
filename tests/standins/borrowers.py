"""A borrower on a bare socket, who leaves when and how a test says, and who times it."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from typing import TYPE_CHECKING, Self

from standins.http_text import Answer, answer, request

if TYPE_CHECKING:
    from types import TracebackType

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 s


class Borrower:
    """`async with await Borrower.of(lender) as borrower:`; the connection is closed at the end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self._reader = reader
        self._writer = writer
        self._token = token
        self.got = b""

    @classmethod
    async def at(cls, port: int, token: str) -> Self:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        return cls(reader, writer, token)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.transport.abort()

    async def ask(self, body: object = None, **more: object) -> None:
        """A request with the borrower's token; `body` and the rest as `http_text.request` takes them."""
        await self.send(request(body=body, token=self._token, **more))  # type: ignore[arg-type]

    async def chat(self, **body: object) -> None:
        await self.ask({"model": "m", "messages": []} | body)

    async def send(self, raw: bytes) -> None:
        self._writer.write(raw)
        await self._writer.drain()

    async def until(self, mark: bytes, within: float = 20.0) -> bytes:
        """Read until `mark` has come; what has come by then."""
        async with asyncio.timeout(within):
            while mark not in self.got:
                piece = await self._reader.read(65536)
                assert piece, f"the connection ended after {self.got!r}"
                self.got += piece
        return self.got

    async def answer(self, within: float = 20.0) -> Answer:
        """The next answer that has a length."""
        await self.until(b"\r\n\r\n", within)
        async with asyncio.timeout(within):
            while not (found := answer(self.got)).whole:
                piece = await self._reader.read(65536)
                assert piece, f"the connection ended after {self.got!r}"
                self.got += piece
        rest = self.got.partition(b"\r\n\r\n")[2]
        self.got = rest[len(found.body) :] if "content-length" in found.headers else b""
        return found

    async def end(self, within: float = 20.0) -> str:
        """Read to the end of the connection; how it ended: `fin` or `reset`."""
        async with asyncio.timeout(within):
            try:
                while piece := await self._reader.read(65536):
                    self.got += piece
            except ConnectionError:
                return "reset"
        return "fin"

    def leave(self, *, reset: bool = False) -> float:
        """Close the connection now; when that was, on CLOCK_MONOTONIC."""
        sock: socket.socket = self._writer.get_extra_info("socket")
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        left = time.monotonic()
        if reset:
            self._writer.transport.abort()
        else:
            self._writer.close()
        return left
