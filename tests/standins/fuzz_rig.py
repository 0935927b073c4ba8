"""A real listener of one dialect on a socket, an upstream that records all it gets, and clients that fuzz.

The host behind the listener is the rig of driven time, which stands still: nobody comes home, nothing gets
stale. All of it runs on one loop, so a record is matched to its job in the ledger by the socket it came on.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import h11

from standins import agreement
from standins.fuzz_judge import Reached, violations
from standins.hosts import host, resource, upstream
from standins.lending_rig import LendingRig
from standins.websocket_text import accept_of
from vacancy_agent.core.job import ReleasedBy
from vacancy_agent.core.settings import Dialect, ResourceType, Target
from vacancy_agent.proxy.app import GatedProxy
from vacancy_dialects import table_for
from vacancy_edge import Budget
from vacancy_http import Listener, ListenerLimits, Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from standins.fuzz_cases import Fuzzed

BATCH = 24
SLOTS = 512
LIMITS = ListenerLimits(
    header_read_s=0.4, body_idle_s=0.4, keep_alive_s=2.0, max_body_bytes=1 << 20, max_connections=4096
)
LAST = b"GET /the-end HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n"
CODES = {
    400: {"bad_request", "ambiguous_body", "background_refused"},
    401: {"unauthorized"},
    403: {"management_denied", "cloud_model"},
    408: {"request_timeout"},
    413: {"body_too_large"},
    415: {"content_encoding"},
    431: {"bad_request"},
    501: {"unrecognised_route"},
    502: {"upstream_invalid"},
    503: {"resource_busy", "tunnel_cap"},
}
"""What the listener itself may say here. Nothing is refused for the owner's sake: he is away."""
_FIRST = re.compile(rb"HTTP/1\.1 (\d\d\d) [^\r\n]*\r\n")


@dataclass
class Found:
    """What the run saw."""

    served: int = 0
    statuses: Counter[tuple[int, str]] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def blame(self, what: str, raw: bytes) -> None:
        if len(self.wrong) < 20:
            self.wrong.append(f"{what}\n    {raw[:1500]!r}")


class Recorder(asyncio.Protocol):
    """One connection of the upstream, read by h11."""

    def __init__(self, rig: FuzzRig) -> None:
        self._rig = rig
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 18)
        self._head: h11.Request | None = None
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._port: int = transport.get_extra_info("peername")[1]

    def data_received(self, data: bytes) -> None:
        self._h11.receive_data(data)
        try:
            while isinstance(event := self._h11.next_event(), (h11.Request, h11.Data, h11.EndOfMessage)):
                if isinstance(event, h11.Request):
                    self._head, self._body = event, b""
                elif isinstance(event, h11.Data):
                    self._body += event.data
                else:
                    self._answer()
        except h11.RemoteProtocolError as error:
            self._rig.found.blame(f"h11 cannot read what reached the upstream: {error}", data)
            self._transport.abort()

    def _answer(self) -> None:
        head = self._head
        assert head is not None
        seen = Reached(
            head.method.decode(),
            head.target.decode("latin-1"),
            tuple((name.decode(), value.decode("latin-1")) for name, value in head.headers),
            self._body,
            self._rig.job_on(self._port),
        )
        status, body, more = self._rig.record(seen)
        self._transport.write(
            b"HTTP/1.1 %d x\r\n%b\r\n%b" % (status, more, b"" if seen.method == "HEAD" else body)
        )
        if status == 101:
            self._transport.close()
            return
        self._h11.send(h11.Response(status_code=status, headers=[("content-length", str(len(body)))]))
        if seen.method != "HEAD":
            self._h11.send(h11.Data(data=body))
        self._h11.send(h11.EndOfMessage())
        self._h11.start_next_cycle()


class FuzzRig:
    """`async with`-less on purpose: `start`, `fuzz`, `close`."""

    def __init__(self, folder: Path, dialect: str) -> None:
        self.dialect = dialect
        self.found = Found()
        self.records: list[Reached] = []
        self._folder = folder

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: self.found.blame(repr(context), b""))
        self._server = await loop.create_server(lambda: Recorder(self), "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.authority = f"127.0.0.1:{port}"
        target = Target("http", "127.0.0.1", port)
        up = upstream("up", ("ram",), dialect=Dialect(self.dialect), target=target, slots=SLOTS)
        self.lending = rig = LendingRig(self._folder, host([up], [resource("ram", ResourceType.MEMORY)]))
        self.upstream = Upstream("127.0.0.1", port)
        self.app = GatedProxy(
            rig.host, up, table_for(self.dialect), self.upstream, rig.journal.partition("up"),
            Budget(64 << 20),
            max_body=LIMITS.max_body_bytes,
        )  # fmt: skip
        self.listener = Listener(self.app, host="127.0.0.1", port=0, limits=LIMITS)
        await self.listener.start()

    async def close(self) -> None:
        await self.listener.close(0)
        self.upstream.close()
        self._server.close()
        await asyncio.sleep(0.05)
        agreement.check(self.lending.host, self.lending.journal, self.lending.reclaims)
        self.lending.tidy()

    # The upstream's side.

    def job_on(self, port: int) -> tuple[str | None, str] | None:
        """Model and borrower of the job whose connection to the upstream has this port."""
        for request in self.lending.host.requests.values():
            transport = getattr(request.exchange.link, "transport", None)  # none while it is being connected
            if (
                transport is not None
                and transport.get_extra_info("sockname")[1] == port
                and request.job is not None
            ):
                return request.job.model, request.job.borrower
        return None

    def record(self, seen: Reached) -> tuple[int, bytes, bytes]:
        """Note it; the status, the body and the fields of the answer."""
        number = len(self.records)
        self.records.append(seen)
        mark = b"x-record: %d\r\n" % number
        body = b'{"object":"list","data":[]}'
        key = dict(seen.headers).get("sec-websocket-key")
        status = 200
        websocket = bool(seen.all("upgrade"))
        if websocket and key is not None and "realtime" not in seen.target:
            agreed = b"upgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: %b\r\n"
            return 101, b"", mark + agreed % accept_of(key.encode())
        if websocket or (seen.method == "POST" and seen.target.endswith("/prompt")):
            status = 400  # such work would go on after its reply
        return status, body, mark + b"content-type: application/json\r\ncontent-length: %d\r\n" % len(body)

    # The clients' side.

    async def fuzz(self, make: Callable[[], Fuzzed], number: int, clients: int = 40) -> Found:
        """Send `number` requests over as many connections at a time as there are `clients`."""
        waiting: list[Fuzzed] = []
        left = number

        def batch() -> list[Fuzzed]:
            nonlocal left
            taken: list[Fuzzed] = []
            while len(taken) < BATCH and (waiting or left):
                if waiting:
                    taken.append(waiting.pop())
                else:
                    left -= 1
                    taken.append(make())
                if not taken[-1].framed:
                    break
            return taken

        async def work() -> None:
            while taken := batch():
                waiting.extend(await self._send(taken))
                self._let_go()

        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(work())
        return self.found

    async def _send(self, taken: list[Fuzzed]) -> list[Fuzzed]:
        """Send these on one connection; those that were not answered, since it ended before."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.listener.port, limit=1 << 22)
        got = b""
        try:
            writer.write(b"".join(case.raw for case in taken) + LAST)
            async with asyncio.timeout(60):
                got = await reader.read(-1)
        except ConnectionError:
            pass  # what was read before a reset is gone, too
        except TimeoutError:
            self.found.blame("no answer and no end", taken[-1].raw)
        finally:
            writer.transport.abort()
        return self._compare(taken, got)

    def _compare(self, taken: list[Fuzzed], got: bytes) -> list[Fuzzed]:
        answers = list(self._answers(taken, got))
        for n, case in enumerate(taken):
            if n >= len(answers):
                rest = taken[max(n, 1) :]  # the first was sent on a fresh connection: no second try
                self.found.served += max(n, 1) - n
                return rest
            self.found.served += 1
            if case.framed:
                self._judge(case, *answers[n])
            else:
                for answer in answers[n:]:
                    self._judge_open(case, *answer)
                break
        return []

    def _answers(self, taken: list[Fuzzed], got: bytes) -> Iterable[tuple[int, dict[bytes, bytes], bytes]]:
        """Cut the answers apart: by their length, but for those to HEAD, which have no body."""
        number = 0
        while got:
            found = _FIRST.match(got)
            end = got.find(b"\r\n\r\n")
            if found is None or end < 0:
                self.found.blame(f"this is no answer: {got[:300]!r}", taken[min(number, len(taken) - 1)].raw)
                return
            status = int(found[1])
            lines = got[found.end() : end].split(b"\r\n") if end > found.end() else []
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)
            }
            got = got[end + 4 :]
            if 100 <= status < 200 and status != 101:
                continue
            length = int(headers.get(b"content-length", 0))
            body = got[:length] if got[:1] == b"{" else b""  # every body here is an object
            got = got[len(body) :]
            number += 1
            yield status, headers, body

    def _judge(self, case: Fuzzed, status: int, headers: dict[bytes, bytes], body: bytes) -> None:
        number = headers.get(b"x-record")
        if number is None:
            self._refused(case, status, headers, body)
        else:
            self._judge_record(int(number), case, case.raw)
        if case.denied and status != 401 and self.listener.counters.malformed == 0:
            self.found.blame(f"without a token: {status}", case.raw)

    def _judge_open(self, case: Fuzzed, status: int, headers: dict[bytes, bytes], body: bytes) -> None:
        number = headers.get(b"x-record")
        if number is None:
            self._refused(case, status, headers, body)
        else:
            self._judge_record(int(number), None, case.raw)

    def _judge_record(self, number: int, case: Fuzzed | None, raw: bytes) -> None:
        seen = self.records[number]
        self.found.statuses[200, "reached"] += 1
        self.found.reached[f"{seen.method} {seen.target.partition('?')[0]}"] += 1
        for wrong in violations(self.dialect, self.authority, seen, case):
            self.found.blame(f"{self.dialect}: {wrong}\n    reached: {seen!r:.1500}", raw)

    def _refused(self, case: Fuzzed, status: int, headers: dict[bytes, bytes], body: bytes) -> None:
        code = headers.get(b"x-vacancy-reason", b"").decode()
        self.found.statuses[status, code] += 1
        if code not in CODES.get(status, ()):
            self.found.blame(f"{self.dialect}: answered {status} {code!r}: {body[:300]!r}", case.raw)
        elif body and not _well_formed(body, code):
            self.found.blame(f"{self.dialect}: a refusal without its shape: {body[:300]!r}", case.raw)

    def _let_go(self) -> None:
        """What could not be proved to have ended would fill every slot."""
        for job in list(self.lending.host.held_slots):
            self.lending.holds.release(job, ReleasedBy.ADMINISTRATOR, "the fuzz goes on")


def _well_formed(body: bytes, code: str) -> bool:
    error: Any = json.loads(body)["error"]
    return error.keys() == {"message", "type", "code", "param", "detail"} and error["code"] == code
