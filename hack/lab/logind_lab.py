"""A real systemd-logind on a private bus, for tests, `hack/try` and `hack/bench`; never the machine's own.

    async with LogindLab() as lab:                   # lab.address: for DBUS_SYSTEM_BUS_ADDRESS
        desk = await lab.create(type="wayland", seat="seat0")
        await lab.hint(desk, locked=True)            # or idle=True
        await lab.logout(desk)
        lab.freeze(); lab.thaw(); lab.kill_bus()

Needs root and the packages dbus and systemd, but no systemd as PID 1.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil

LOGIN1 = "org.freedesktop.login1"
MANAGER = "/org/freedesktop/login1"
LOGIND = Path("/lib/systemd/systemd-logind")
SUPERVISOR = Path(__file__).with_name("logind_supervisor.py")
INSTALL_HINT = "apt-get install dbus systemd util-linux, and run as root"
START_DEADLINE_S = 15.0
GAMES_UID = 5
"""A system user: logind removes what ordinary users leave behind in shared memory when they log out."""


def missing() -> str | None:
    """What this machine lacks for the lab, or None."""
    if sys.platform != "linux":
        return "Linux"
    if os.geteuid() != 0:
        return "root"
    lacking = [tool for tool in ("dbus-daemon", "unshare", "setpriv") if shutil.which(tool) is None]
    if not LOGIND.exists():
        lacking.append("systemd-logind")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        lacking.append("permission for a mount namespace")
    return ", ".join(lacking) or None


@dataclass
class LabSession:
    """An open session: it ends when its pipe is closed."""

    id: str
    path: str
    fifo: int
    leader: subprocess.Popen[bytes]


class LogindLab:
    """The bus, logind on it, and the sessions that were opened."""

    def __init__(self) -> None:
        self.address = ""
        self._sessions: dict[str, LabSession] = {}
        self._inhibitors: list[int] = []
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._facts: dict[str, Any] = {}
        self._bus: Any = None

    async def start(self) -> None:
        """Start everything; takes a third of a second."""
        self._supervisor = _supervisor()
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                self._facts = json.loads(await _first_line(self._supervisor))
            self.address = self._facts["address"]
            await self._connect()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything and remove what was written; safe to call twice."""
        if self._bus is not None:
            self._bus.disconnect()
            self._bus = None
        for session in self._sessions.values():
            os.close(session.fifo)
            _end(session.leader)
        self._sessions.clear()
        for fd in self._inhibitors:
            os.close(fd)
        self._inhibitors.clear()
        if self._supervisor is not None and self._supervisor.returncode is None:
            self.thaw()
            assert self._supervisor.stdin is not None
            assert self._supervisor.stdout is not None
            self._supervisor.stdin.close()
            self._supervisor.stdout.close()
            self._supervisor.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()

    async def create(
        self,
        *,
        uid: int = GAMES_UID,
        type: str = "wayland",  # noqa: A002 - logind's word
        cls: str = "user",
        seat: str = "",
        tty: str = "",
        remote: bool = False,
        desktop: str = "GNOME",
        runs: str | None = None,
    ) -> str:
        """Log somebody in; returns the session's id. `runs`: the name of a process below the leader."""
        leader = self._leader(runs, uid)
        while runs is not None and not _runs(leader.pid, runs):  # noqa: ASYNC110 - a process sets no event
            await asyncio.sleep(0.005)
        body = [uid, leader.pid, "lab", type, cls, desktop, seat, 0, tty, "", remote, "", "", []]
        reply = await self._call(MANAGER, "Manager", "CreateSession", "uusssssussbssa(sv)", body)
        name, path, _, fifo = reply.body[:4]
        self._sessions[name] = LabSession(name, path, reply.unix_fds[fifo], leader)
        return str(name)

    async def hint(self, session: str, *, locked: bool | None = None, idle: bool | None = None) -> None:
        """Set the hints that a desktop sets."""
        path = self._sessions[session].path
        if locked is not None:
            await self._call(path, "Session", "SetLockedHint", "b", [locked])
        if idle is not None:
            await self._call(path, "Session", "SetIdleHint", "b", [idle])

    async def activate(self, session: str) -> None:
        """Bring a session to the front of its seat."""
        await self._call(MANAGER, "Manager", "ActivateSession", "s", [session])

    async def logout(self, session: str) -> None:
        """Log out; returns when logind has forgotten the session."""
        gone = self._sessions.pop(session)
        os.close(gone.fifo)
        _end(gone.leader)
        while session in await self.sessions():  # noqa: ASYNC110 - the bus is asked
            await asyncio.sleep(0.005)

    async def sessions(self) -> list[str]:
        """The ids of the sessions that logind knows."""
        reply = await self._call(MANAGER, "Manager", "ListSessions")
        return [row[0] for row in reply.body[0]]

    async def inhibit_idle(self) -> int:
        """Hold off idling, as a film player does, until the returned descriptor is closed by `release`."""
        reply = await self._call(MANAGER, "Manager", "Inhibit", "ssss", ["idle", "lab", "a film", "block"])
        self._inhibitors.append(reply.unix_fds[reply.body[0]])
        return self._inhibitors[-1]

    def release(self, inhibitor: int) -> None:
        self._inhibitors.remove(inhibitor)
        os.close(inhibitor)

    async def sleep(self) -> None:
        """Suspend, as far as logind can tell: `PrepareForSleep(true)`, and nothing until `wake`."""
        await self._call(MANAGER, "Manager", "Suspend", "b", [False])

    def wake(self) -> None:
        """`PrepareForSleep(false)`."""
        assert self._supervisor is not None
        assert self._supervisor.stdin is not None
        self._supervisor.stdin.write(b"wake\n")
        self._supervisor.stdin.flush()

    def freeze(self) -> None:
        """Stop logind: it answers nothing and sends no error, ever."""
        os.kill(self._facts["logind_pid"], signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in ("logind_pid", "bus_pid"):
            if pid in self._facts:
                os.kill(self._facts[pid], signal.SIGCONT)

    def freeze_bus(self) -> None:
        """Stop the bus: connections are accepted by the kernel and never answered."""
        os.kill(self._facts["bus_pid"], signal.SIGSTOP)

    def kill_bus(self) -> None:
        """End the bus for good; only `stop` is of use after it."""
        os.kill(self._facts["bus_pid"], signal.SIGKILL)

    async def _connect(self) -> None:
        from dbus_fast.aio import MessageBus

        self._bus = await MessageBus(bus_address=self.address, negotiate_unix_fd=True).connect()

    async def _call(self, path: str, interface: str, member: str, signature: str = "", body: Any = ()) -> Any:
        from dbus_fast import Message, MessageType

        reply = await self._bus.call(
            Message(
                destination=LOGIN1,
                path=path,
                interface=f"{LOGIN1}.{interface}",
                member=member,
                signature=signature,
                body=list(body),
            )
        )
        if reply.message_type is MessageType.ERROR:
            raise RuntimeError(f"{member}: {reply.error_name} {reply.body}")
        return reply

    def _leader(self, runs: str | None, uid: int) -> subprocess.Popen[bytes]:
        """A process that ends when its input closes, so it cannot outlive whoever uses the lab."""
        argv = ["cat"]
        if runs is not None:
            program = Path(self._facts["folder"]) / runs
            shutil.copy(shutil.which("cat") or "cat", program)
            argv = ["sh", "-c", 'exec 3<&0; "$1" <&3 & wait', "sh", str(program)]
        return subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True, user=uid
        )


def _runs(pid: int, name: str) -> bool:
    """Whether a child of that name is there: a session that is seen before its compositor is another one."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return any(child.name() == name for child in psutil.Process(pid).children())
    return False


def _end(leader: subprocess.Popen[bytes]) -> None:
    assert leader.stdin is not None
    leader.stdin.close()
    leader.wait()


def _supervisor() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(SUPERVISOR)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for whoever uses the lab; the lab ends with it
    )


async def _first_line(process: subprocess.Popen[bytes]) -> bytes:
    """Read without blocking the loop and without a thread that could outlive it."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    line = b""
    while not line.endswith(b"\n"):
        piece = process.stdout.read()
        if piece == b"":
            raise RuntimeError("the lab did not start; LOGIND_LAB_VERBOSE=1 shows why")
        line += piece or b""
        await asyncio.sleep(0.005)
    return line
