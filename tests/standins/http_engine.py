"""The HTTP engine without sockets: recording transports, driven time, an application that notes all."""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from vacancy_http import (
    Ending,
    Exchange,
    Listener,
    ListenerLimits,
    ProtocolFault,
    Reply,
    Upstream,
    UpstreamLimits,
)
from vacancy_http.server_conn import ServerConnection
from vacancy_http.upstream_conn import UpstreamConnection
from vacancy_http.wheel import Wheel

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from vacancy_http.reply import ResponseHead

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
GET = b"GET /x HTTP/1.1\r\nhost: proxy\r\n\r\n"
POST = b"POST /x HTTP/1.1\r\nhost: proxy\r\ncontent-length: 5\r\n\r\nhello"


class DrivenLoop:
    """As much of a loop as the engine uses; time moves by `advance` only."""

    def __init__(self) -> None:
        self.now = 100.0
        self._soon: list[Callable[[], object]] = []
        self._later: list[tuple[float, int, Timer]] = []
        self._order = count()

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[[], object]) -> None:
        self._soon.append(callback)

    def call_later(self, delay: float, callback: Callable[[], object]) -> Timer:
        timer = Timer(callback)
        heapq.heappush(self._later, (self.now + delay, next(self._order), timer))
        return timer

    @property
    def timers(self) -> int:
        return sum(not timer.cancelled for _, _, timer in self._later)

    def settle(self) -> None:
        while self._soon:
            soon, self._soon = self._soon, []
            for callback in soon:
                callback()

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        self.settle()
        while self._later and self._later[0][0] <= end:
            self.now, _, timer = heapq.heappop(self._later)
            if not timer.cancelled:
                timer.callback()
            self.settle()
        self.now = end


class Timer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeTransport:
    """Records what is written and done; delivers `connection_lost` a turn later, as a loop does."""

    def __init__(self, loop: DrivenLoop, protocol: asyncio.Protocol, high: int = 64 << 10) -> None:
        self.loop = loop
        self.protocol = protocol
        self.out = bytearray()
        self.reading = True
        self.aborted = False
        self.closed = False
        self.eof = False
        self.writes = 0
        self.clogged = False  # takes no more: what is written stays in the buffer
        self.unsent = 0
        self.high = high
        self._paused = False

    def write(self, data: bytes) -> None:
        assert not self.eof, "written after the end"
        self.writes += 1
        if self.is_closing():
            return
        self.out += data
        if self.clogged:
            self.unsent += len(data)
            if self.unsent > self.high and not self._paused:
                self._paused = True
                self.protocol.pause_writing()

    def take(self, n: int) -> None:
        """The other side takes `n` bytes of what waits."""
        self.unsent = max(0, self.unsent - n)
        if self._paused and self.unsent <= self.high // 4:
            self._paused = False
            self.protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def get_extra_info(self, name: str) -> object:
        return ("192.0.2.1", 5) if name == "peername" else None

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.eof = True

    def is_closing(self) -> bool:
        return self.aborted or self.closed

    def abort(self) -> None:
        if not self.aborted:
            if not self.closed or self.unsent:
                self.loop.call_soon(lambda: self.protocol.connection_lost(None))
            self.aborted = True

    def close(self) -> None:
        if not self.is_closing():
            self.closed = True
            if not self.unsent:
                self.loop.call_soon(lambda: self.protocol.connection_lost(None))

    def drain(self) -> bytes:
        data = bytes(self.out)
        self.out.clear()
        return data


class CountedBudget:
    def __init__(self, total: int = 1 << 40) -> None:
        self.total = total
        self.peak = 0
        self._used = 0

    @property
    def used(self) -> int:
        return self._used

    @used.setter
    def used(self, n: int) -> None:
        assert 0 <= n <= self.total
        self._used = n
        self.peak = max(self.peak, n)

    @property
    def held(self) -> int:
        return self._used

    def reserve(self, n: int) -> bool:
        if self.used + n > self.total:
            return False
        self.used += n
        return True

    def release(self, n: int) -> None:
        self.used -= n


class NotingApp:
    """Collects every body and forwards everything, unless told otherwise; notes each call."""

    def __init__(self, upstream: Upstream) -> None:
        self.budget = CountedBudget()
        self.upstream = upstream
        self.seen: list[Exchange] = []
        self.bodies: list[bytes] = []
        self.endings: list[Ending] = []
        self.faults: list[tuple[ProtocolFault, str]] = []
        self.heads: list[ResponseHead] = []
        self.on_head: Callable[[Exchange], None] = self.collect_or_forward
        self.on_body: Callable[[Exchange], None] = self.forward
        self.on_response: Callable[[Exchange, ResponseHead], None] = lambda _x, _head: None
        self.on_end: Callable[[Exchange, Ending], None] = lambda _x, _ending: None

    def collect_or_forward(self, x: Exchange) -> None:
        if x.has_body:
            x.collect_body()
        else:
            self.forward(x)

    def forward(self, x: Exchange) -> None:
        x.forward(self.upstream, target=x.target, drop=frozenset(), add=(), body=x.body)

    def fault_reply(self, fault: ProtocolFault, detail: str) -> Reply:
        self.faults.append((fault, detail))
        return Reply(fault.status, ((b"x-fault", fault.value.encode()),), detail.encode())

    def head_received(self, x: Exchange) -> None:
        self.seen.append(x)
        self.on_head(x)

    def body_received(self, x: Exchange) -> None:
        assert x.body is not None
        self.bodies.append(x.body.bytes)
        self.on_body(x)

    def response_started(self, x: Exchange, head: ResponseHead) -> None:
        self.heads.append(head)
        self.on_response(x, head)

    def exchange_ended(self, x: Exchange, ending: Ending) -> None:
        assert not x.alive
        assert x.link is None
        assert x.reserved == 0
        self.endings.append(ending)
        self.on_end(x, ending)


class FakeUpstream(Upstream):
    """A pool whose new connections are fake transports."""

    def __init__(self, rig: Rig, limits: UpstreamLimits, **options: Any) -> None:
        super().__init__("10.0.0.9", 8000, limits=limits, **options)
        self.rig = rig
        self.connects = True
        self.waits = False
        self.links: list[UpstreamConnection] = []

    def open(self, x: Exchange, wheel: Wheel) -> None:
        link = UpstreamConnection(self, wheel, x)
        x.link = link
        self.connect(link)

    def connect(self, link: UpstreamConnection) -> None:
        self.links.append(link)
        if self.waits:
            return
        if self.connects:
            link.connection_made(cast("asyncio.Transport", FakeTransport(self.rig.loop, link)))
        else:
            link.connect_failed("refused")


class Rig:
    """One listener with one upstream, all in this process and in driven time."""

    def __init__(
        self,
        limits: ListenerLimits | None = None,
        upstream_limits: UpstreamLimits | None = None,
    ) -> None:
        self.loop = DrivenLoop()
        self.upstream = FakeUpstream(self, upstream_limits or UpstreamLimits())
        self.app = NotingApp(self.upstream)
        self.listener = Listener(self.app, host="", port=0, limits=limits or ListenerLimits())
        self.listener.wheel = Wheel(cast("asyncio.AbstractEventLoop", self.loop))

    def connect(self, data: bytes = b"") -> Client:
        client = Client(self)
        if data:
            client.send(data)
        return client

    def link(self, index: int = -1) -> Server:
        return Server(self, self.upstream.links[index])


class _Side:
    rig: Rig
    protocol: asyncio.Protocol
    transport: FakeTransport

    def send(self, data: bytes) -> None:
        self.protocol.data_received(data)
        self.rig.loop.settle()

    def hang_up(self) -> None:
        """Send a FIN."""
        if not self.protocol.eof_received():
            self.transport.close()
        self.rig.loop.settle()

    def break_off(self, error: Exception | None = None) -> None:
        """The connection breaks."""
        self.transport.closed = True
        self.protocol.connection_lost(error)
        self.rig.loop.settle()

    def got(self) -> bytes:
        return self.transport.drain()


class Client(_Side):
    """What a client sees of the listener."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.protocol: ServerConnection = ServerConnection(rig.listener)
        self.transport = FakeTransport(rig.loop, self.protocol)
        self.protocol.connection_made(cast("asyncio.Transport", self.transport))
        rig.loop.settle()


class Server(_Side):
    """What an upstream sees of one connection."""

    def __init__(self, rig: Rig, link: UpstreamConnection) -> None:
        self.rig = rig
        self.protocol: UpstreamConnection = link
        self.transport = cast("FakeTransport", link.transport)
