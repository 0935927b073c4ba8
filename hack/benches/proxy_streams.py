"""Streams through the agent: what is delivered, how late, what they cost, and how fast they end."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from typing import TYPE_CHECKING, Any

from benches.memory import PeakWatch, resident, shared_out
from benches.paced import EVENTS_PER_SECOND
from benches.parts import LOOPBACK, Lab, PartError, free_port, python_module
from benches.report import MIB, Report, median, percentile
from benches.streams import close_all, count_for, open_streams
from benches.upload import BODY_BYTES, upload_once
from benches.wrk import Target

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from benches.agent import Agent

MANY, SOME = 256, 32
WARM_UP_BYTES = 5 * MIB
STATE_DEADLINE_S = 10.0


class StreamBench:
    """The groups of figures that share one agent and one paced upstream."""

    def __init__(self, report: Report, lab: Lab, agent: Agent, upstream: int, *, quick: bool) -> None:
        self.report = report
        self.lab = lab
        self.agent = agent
        self.upstream = upstream
        self.quick = quick
        self.through = Target("agent", agent.port, agent.borrow)
        self.direct = Target("direct", upstream)

    async def run(self, groups: list[str]) -> None:
        """Measure each group, the agent quiet again between them."""
        known: dict[str, Callable[[], Awaitable[None]]] = {
            "streams": self.delivered,
            "delay": self.delay,
            "cancel": self.cancel,
            "gone": self.gone,
            "body": self.body,
        }
        for group in groups:
            await self.settle()
            await known[group]()

    async def settle(self) -> None:
        """Wait until nothing runs and nothing is held."""
        await asyncio.to_thread(self.agent.wait_lendable)

    def state(self) -> dict[str, Any]:
        """What the upstream sees."""
        connection = http.client.HTTPConnection(LOOPBACK, self.upstream, timeout=10)
        try:
            connection.request("GET", "/bench/state")
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer
        finally:
            connection.close()

    async def until_closed(self, count: int) -> float:
        """When the last of `count` more streams closed under the upstream, on the monotonic clock."""
        deadline = time.monotonic() + STATE_DEADLINE_S
        while time.monotonic() < deadline:
            state = self.state()
            if state["closed"] >= count:
                return float(state["last_closed"])
            await asyncio.sleep(0.05)
        raise TimeoutError(f"the upstream still sees streams: {state}")

    async def delivered(self) -> None:
        """256 streams, 200 events a second each: what arrives, against the same without the agent between."""
        rates: dict[str, list[float]] = {"agent": [], "direct": []}
        idle = resident(self.agent.pid)
        for _ in range(2 if self.quick else 5):
            for target in (self.direct, self.through):
                streams = await open_streams(target, MANY)
                await asyncio.sleep(0.5)
                rates[target.name].append(await count_for(streams, 2.0 if self.quick else 4.0))
                if target is self.through:
                    self.report.add("rss_stream_bytes", (resident(self.agent.pid) - idle) / MANY)
                await close_all(streams)
                await self.settle()
        through, direct = median(rates["agent"]), median(rates["direct"])
        self.report.note(f"{MANY} streams: {direct:,.0f} events/s direct, {through:,.0f} through the agent")
        self.report.note(
            f"paced for {MANY * EVENTS_PER_SECOND:,} events/s; a lower direct rate is the generator's limit"
        )
        self.report.add("streams256_delivered", through / direct)

    async def delay(self) -> None:
        """Delay of events on 32 streams beside uploads of 64 MiB, against a plain aiohttp proxy."""
        port = free_port()
        peer = python_module("benches.peer_aiohttp", str(port), str(self.upstream))
        self.lab.start("aiohttp", peer, port=port, core=self.lab.proxy_core)
        delays: dict[str, list[float]] = {"agent": [], "aiohttp": []}
        uploads = 2 if self.quick else 5
        for _ in range(1 if self.quick else 3):
            for target in (self.through, Target("aiohttp", port)):
                streams = await open_streams(target, SOME, delays=delays[target.name])
                for _ in range(uploads):
                    await upload_once(target)
                await close_all(streams)
                await self.settle()
        ours, theirs = (percentile(delays[name], 0.99) for name in ("agent", "aiohttp"))
        self.report.note(
            f"p99 delay beside 64 MiB uploads: agent {ours * 1e3:.1f} ms, aiohttp {theirs * 1e3:.1f} ms"
        )
        self.report.add("chunk_delay_p99_s", ours)
        self.report.add("chunk_delay_p99_aiohttp", ours / theirs)

    async def cancel(self) -> None:
        """256 streams cut by the owner's switch: from the request to the last upstream connection closed."""
        taken = []
        for _ in range(2 if self.quick else 7):
            await open_streams(self.through, MANY)
            closed = self.state()["closed"] + MANY
            control, order = self.agent.prepare("/admin/pause", {"for": "1h"})
            started = time.monotonic()
            control.sendall(order)
            taken.append(await self.until_closed(closed) - started)
            with control:
                answer = control.recv(4096)
            if not answer.startswith(b"HTTP/1.1 2"):
                raise PartError(f"the pause was refused: {answer[:300]!r}")
            await asyncio.to_thread(self.agent.order, "/admin/resume", {})
            await self.settle()
        self.report.note(
            f"cancel of {MANY} streams, ms: {', '.join(f'{value * 1e3:.1f}' for value in taken)}"
        )
        self.report.add("cancel256_s", median(taken))

    async def gone(self) -> None:
        """A client leaves in mid-stream: until the upstream's connection is closed; 95th percentile."""
        taken = []
        for _ in range(20 if self.quick else 100):
            (stream,) = await open_streams(self.through, 1)
            await asyncio.sleep(0.02)
            closed = self.state()["closed"] + 1
            started = time.monotonic()
            stream.abort()
            taken.append(await self.until_closed(closed) - started)
        self.report.note(
            f"client gone, ms: p50 {median(taken) * 1e3:.2f}, p95 {percentile(taken, 0.95) * 1e3:.2f}"
        )
        self.report.add("client_gone_s", percentile(taken, 0.95))

    async def body(self) -> None:
        """What one body of 64 MiB adds to the memory of the agent and its helper, in bodies."""
        await upload_once(self.through, WARM_UP_BYTES)  # the helper process is there from here on
        base = shared_out(self.agent.pid)
        with PeakWatch(self.agent.pid) as watch:
            for _ in range(1 if self.quick else 3):
                await upload_once(self.through)
        self.report.note(
            f"body of 64 MiB: {base / MIB:.1f} MiB before, {watch.peak / MIB:.1f} MiB at the peak"
        )
        self.report.add("body64_peak_ratio", (watch.peak - base) / BODY_BYTES)
