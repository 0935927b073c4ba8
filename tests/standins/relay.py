"""A relay that copies bytes both ways and keeps them: what a client got, and what a server sent."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from standins.http_text import Answer, answer, head_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "trailer", "upgrade"}
)
PIECE = 1 << 16


@dataclass(eq=False)
class Recorded:
    """One connection: what its client sent, what it got, and whether each end is still there."""

    sent: bytearray = field(default_factory=bytearray)
    got: bytearray = field(default_factory=bytearray)
    client_left: bool = False
    server_left: bool = False

    @property
    def first_line(self) -> str:
        return head_of(bytes(self.sent))[0]

    @property
    def reply(self) -> Answer:
        return answer(bytes(self.got))

    @property
    def fields(self) -> dict[str, str]:
        """The fields of the reply that are meant for whoever reads it at the end."""
        return {name: value for name, value in self.reply.headers.items() if name not in HOP_BY_HOP}


class Relay:
    """Listens on `port` of loopback and connects each client to the server at `target_port`."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.port = 0
        self.connections: list[Recorded] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def of(self, path: str) -> list[Recorded]:
        """The connections whose first request was for this path."""
        return [one for one in self.connections if one.first_line.partition(" ")[2].startswith(f"{path} ")]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client, until either end closes; a cut is passed on as a cut."""
        record = Recorded()
        self.connections.append(record)
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.transport.abort()
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._copy(reader, to_writer, record, "client_left", record.sent))
            group.create_task(self._copy(to_reader, writer, record, "server_left", record.got))

    async def _copy(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        record: Recorded,
        left: str,
        kept: bytearray,
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(PIECE):
                kept += data
                writer.write(data)
                await writer.drain()
        setattr(record, left, True)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def relay(target_port: int) -> AsyncIterator[Relay]:
    """A relay for the length of the block."""
    made = Relay(target_port)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
