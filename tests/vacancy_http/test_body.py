"""Bodies in memory and in memory files."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from standins.http_engine import GET, OK
from standins.http_sockets import ScriptedUpstream, UpstreamPeer, client, on_each_loop, read_reply, running
from standins.until import until
from vacancy_http import Ending, Exchange, Reply, Upstream
from vacancy_http.body import FILE_ABOVE, Body, BodySink, anonymous_file, write_all

MIB = 1 << 20


def collected(pieces: list[bytes], expected: int) -> Body:
    sink = BodySink(expected)
    for piece in pieces:
        sink.write(piece)
    assert sink.length == sum(map(len, pieces))
    return sink.finish()


@pytest.mark.parametrize("expected", [0, 300])
def test_a_small_body_is_one_bytes_object(expected: int) -> None:
    body = collected([b"a" * 100] * 3, expected)
    assert len(body) == 300
    assert body.bytes == b"a" * 300
    assert body.view() == b"a" * 300
    assert body.fileno() is None
    body.close()
    with pytest.raises(ValueError, match="closed"):
        body.view()
    with pytest.raises(ValueError, match="closed"):
        _ = body.bytes


@pytest.mark.parametrize("known", [True, False])
def test_a_large_one_is_a_file_another_process_can_read(known: bool) -> None:
    pieces = [bytes([i]) * 200_000 for i in range(10)]
    body = collected(pieces, 2_000_000 if known else 0)
    descriptor = body.fileno()
    assert descriptor is not None
    assert os.pread(descriptor, 2_000_001, 0) == b"".join(pieces)
    assert body.bytes == b"".join(pieces)
    assert len(body.view()) == len(body) == 2_000_000
    body.close()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(descriptor)
    with pytest.raises(ValueError, match="closed"):
        body.view()


def test_the_border_is_1_mib() -> None:
    assert collected([b"x" * FILE_ABOVE], FILE_ABOVE).fileno() is None
    body = collected([b"x" * FILE_ABOVE, b"y"], 0)
    assert body.fileno() is not None
    body.close()


def test_close_while_somebody_holds_a_slice_leaves_that_slice_alone() -> None:
    body = collected([b"z" * (2 * MIB)], 2 * MIB)
    piece = body.view()[:10]
    body.close()
    assert piece == b"z" * 10


def test_a_discarded_sink_gives_its_file_back() -> None:
    sink = BodySink(2 * MIB)
    sink.write(b"x" * MIB)
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else None
    sink.discard()
    if before is not None:
        assert len(list(Path("/proc/self/fd").iterdir())) == before - 1


def test_without_memory_files_an_unlinked_one_takes_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    body = collected([b"x" * (2 * MIB)], 2 * MIB)
    assert body.bytes == b"x" * (2 * MIB)
    body.close()


def test_a_file_that_takes_less_than_it_is_given_gets_the_rest() -> None:
    taken: list[bytes] = []

    class Slow:
        def write(self, data: bytes) -> int:
            taken.append(data[:3])
            return len(taken[-1])

    write_all(Slow(), b"abcdefgh")  # type: ignore[arg-type]
    assert b"".join(taken) == b"abcdefgh"


def test_an_anonymous_file_has_no_name_to_find() -> None:
    with anonymous_file() as file:
        assert not isinstance(file.name, str)


def _rss() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) << 10
    raise AssertionError


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@on_each_loop
async def test_a_stream_of_1_gib_does_not_grow_the_process() -> None:
    block = bytes(MIB)

    async def pour(peer: UpstreamPeer) -> None:
        await peer.request()
        peer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (1024 * MIB))
        for _ in range(1024):
            peer.write(block)
            await peer.writer.drain()

    async with (
        ScriptedUpstream(pour) as upstream,
        running(Upstream("127.0.0.1", upstream.port)) as (listener, app),
    ):
        async with client(listener.port) as (reader, writer):
            writer.write(GET)
            await reader.readuntil(b"\r\n\r\n")
            got, peak, base, next_look = 0, 0, _rss(), 0
            while got < 1024 * MIB:
                got += len(await reader.read(MIB))
                if got >= next_look:
                    next_look += 32 * MIB
                    await asyncio.sleep(0.01)  # a client that takes less than comes
                    peak = max(peak, _rss())
        assert peak - base < 24 * MIB
        assert app.endings == [Ending.COMPLETE]
        assert app.seen[0].response_bytes == 1024 * MIB


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@on_each_loop
async def test_64_clients_with_64_mib_each_stay_within_the_budget() -> None:
    block = bytes(MIB)
    statuses: list[bytes] = []

    async def swallow(peer: UpstreamPeer) -> None:
        head = await peer.reader.readuntil(b"\r\n\r\n")
        assert b"content-length: %d\r\n" % (64 * MIB) in head
        left = 64 * MIB
        while left:
            left -= len(await peer.reader.read(MIB))
        peer.write(OK)
        await peer.closed(10)

    async def upload(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /x HTTP/1.1\r\nhost: p\r\ncontent-length: %d\r\n\r\n" % (64 * MIB))
        for _ in range(64):
            writer.write(block)
            await writer.drain()
        statuses.append((await read_reply(reader))[9:12])
        writer.close()

    async with (
        ScriptedUpstream(swallow) as upstream,
        running(Upstream("127.0.0.1", upstream.port)) as (listener, app),
    ):
        app.bodies = _Forgetful()
        app.budget.total = 256 * MIB
        base, peak = _rss(), 0
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            tasks = [group.create_task(upload(listener.port)) for _ in range(64)]
            while not all(task.done() for task in tasks):
                await asyncio.sleep(0.05)
                peak = max(peak, _rss())
        assert statuses.count(b"200") >= 4
        assert statuses.count(b"200") + statuses.count(b"503") == 64
        assert statuses.count(b"503") >= 1
        assert app.budget.peak <= 256 * MIB
        assert app.budget.held == 0
        assert peak - base < 1.15 * 256 * MIB + 64 * MIB  # the clients and the upstream live here, too
        await until(lambda: _rss() - base < 96 * MIB)


class _Forgetful(list[bytes]):
    """Keeps no body."""

    def append(self, _body: bytes) -> None:
        return


@on_each_loop
async def test_a_body_of_64_mib_costs_little_more_than_itself() -> None:
    block = bytes(MIB)
    seen: list[tuple[int, int | None]] = []

    def look(x: Exchange) -> None:
        assert x.body is not None
        view = x.body.view()
        seen.append((len(view), x.body.fileno()))
        view.release()
        x.respond(Reply(200, (), b"ok"))

    async with running(Upstream("127.0.0.1", 1)) as (listener, app):
        app.bodies = _Forgetful()
        app.body_received = look  # type: ignore[method-assign]
        async with client(listener.port) as (reader, writer):
            base = _rss() if sys.platform == "linux" else 0
            writer.write(b"POST /x HTTP/1.1\r\nhost: p\r\ncontent-length: %d\r\n\r\n" % (64 * MIB))
            for _ in range(64):
                writer.write(block)
                await writer.drain()
            await read_reply(reader)
        assert seen[0][0] == 64 * MIB
        assert isinstance(seen[0][1], int)
        if sys.platform == "linux":
            assert _rss() - base < 16 * MIB


@pytest.mark.parametrize("size", [10, FILE_ABOVE + 10])
def test_bytes_are_replaced_by_as_many_others(size: int) -> None:
    sink = BodySink(size)
    sink.write(b"." * size)
    body = sink.finish()
    view = body.view()
    body.overwrite(size - 5, b"abc")
    assert body.bytes[-6:] == b".abc.."
    assert len(body) == size
    for at in (-1, size - 2):
        with pytest.raises(ValueError, match="outside"):
            body.overwrite(at, b"abc")
    view.release()
    body.close()
    body.overwrite(0, b"abc")


def test_a_body_may_get_longer_by_others_doing():
    file = anonymous_file()
    file.write(b"abc")
    body = Body.of_file(file, 3)
    before = body.view()
    os.ftruncate(file.fileno(), 5)
    os.pwrite(file.fileno(), b"XYabc", 0)
    body.grown(5)
    assert (len(body), body.bytes, bytes(before)) == (5, b"XYabc", b"XYa")
    with pytest.raises(ValueError, match="shorter"):
        body.grown(4)
    before.release()
    body.close()
    body.grown(9)
    assert len(body) == 5


def test_a_body_of_bytes_has_no_file_to_grow():
    body = Body(b"abc")
    body.grown(9)
    assert (len(body), body.bytes) == (3, b"abc")
