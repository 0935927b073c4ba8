"""Runs a private system bus with a real systemd-logind on it until its standard input closes.

Everything it starts dies with it, and it dies with whoever holds its input, even when that one is killed: so
nothing is left behind, whatever becomes of a test. logind sees an empty /run, no terminals and no devices of
this machine, so it neither reads nor changes any of them; systemd itself is played by this program.
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
import tempfile
from pathlib import Path

from dbus_fast import Message, MessageFlag, MessageType, Variant
from dbus_fast.aio import MessageBus

VERBOSE = "LOGIND_LAB_VERBOSE" in os.environ
LOGIND = "/lib/systemd/systemd-logind"
SYSTEMD1 = "org.freedesktop.systemd1"
BUS_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
  </policy>
</busconfig>
"""
# Without terminals a seat has no virtual terminals: its active session is the one that was activated last.
# The bound file says that this machine could sleep; what would make it sleep is systemd, which is not here.
PRIVATE = """
mount -t tmpfs tmpfs /run && mkdir /run/systemd
mount -t tmpfs tmpfs /sys/class/tty
if [ -e /sys/power/state ]; then mount --bind "$1" /sys/power/state; fi
exec "$2"
"""


class Systemd:
    """As much of org.freedesktop.systemd1 as logind needs to open and close sessions, and to sleep."""

    def __init__(self, bus: MessageBus) -> None:
        self._bus = bus
        self._jobs = 0
        self._asleep: list[tuple[int, str]] = []
        bus.add_message_handler(self._answer)

    def wake(self) -> None:
        """End the sleep that logind asked for."""
        for job, unit in self._asleep:
            self._job_removed(job, unit)
        self._asleep.clear()

    def _answer(self, message: Message) -> Message | None:
        if message.message_type is not MessageType.METHOD_CALL or message.sender == "org.freedesktop.DBus":
            return None
        if message.member in ("StartUnit", "StopUnit", "StartTransientUnit"):
            return self._job(message)
        if message.member == "Abandon":  # the scope's last process left: logind may forget the session
            self._later(self._unit_removed, message.path)
        if message.member == "Get":
            state = {"ActiveState": "inactive", "State": "waiting", "LoadState": "loaded"}.get(
                message.body[1], ""
            )
            return Message.new_method_return(message, "v", [Variant("s", state)])
        if message.flags & MessageFlag.NO_REPLY_EXPECTED:
            return None
        return Message.new_method_return(message)

    def _job(self, message: Message) -> Message:
        self._jobs += 1
        unit = message.body[0]
        if unit == "suspend.target":
            self._asleep.append((self._jobs, unit))
        else:
            self._later(self._job_removed, self._jobs, unit)
        return Message.new_method_return(message, "o", [f"/org/freedesktop/systemd1/job/{self._jobs}"])

    def _later(self, call, *args) -> None:
        asyncio.get_running_loop().call_later(0.002, call, *args)

    def _job_removed(self, job: int, unit: str) -> None:
        path = f"/org/freedesktop/systemd1/job/{job}"
        self._signal("JobRemoved", "uoss", [job, path, unit, "done"])

    def _unit_removed(self, path: str) -> None:
        unit = path.rsplit("/", 1)[1].replace("_2d", "-").replace("_2e", ".")
        self._signal("UnitRemoved", "so", [unit, path])

    def _signal(self, member: str, signature: str, body: list) -> None:
        path, interface = "/org/freedesktop/systemd1", f"{SYSTEMD1}.Manager"
        self._bus.send(Message.new_signal(path, interface, member, signature, body))


class Supervisor:
    """The parts and their end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "bus"
        self.address = f"unix:path={self.socket}"
        self._children: list[subprocess.Popen[bytes]] = []

    def spawn(self, argv: list[str], **env: str) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *argv],
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=None if VERBOSE else subprocess.DEVNULL,
        )
        self._children.append(child)
        return child

    async def start(self) -> tuple[Systemd, dict[str, object]]:
        config, states = self.folder / "bus.conf", self.folder / "power-states"
        config.write_text(BUS_CONFIG.format(socket=self.socket))
        states.write_text("freeze mem\n")
        daemon = self.spawn(["dbus-daemon", f"--config-file={config}", "--nofork", "--nopidfile"])
        bus = await self._connect()
        systemd = Systemd(bus)
        await bus.request_name(SYSTEMD1)
        private = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", PRIVATE, "sh"]
        logind = self.spawn(
            [*private, str(states), LOGIND],
            DBUS_SYSTEM_BUS_ADDRESS=self.address,
            SYSTEMD_LOG_TARGET="console",
        )
        while not await self._is_owned(bus, "org.freedesktop.login1"):
            if logind.poll() is not None:
                raise SystemExit("systemd-logind ended at once; LOGIND_LAB_VERBOSE=1 shows why")
            await asyncio.sleep(0.005)
        pids = {"bus_pid": daemon.pid, "logind_pid": logind.pid}
        return systemd, {"address": self.address, "folder": str(self.folder), **pids}

    def stop(self) -> None:
        for child in reversed(self._children):
            child.kill()
            child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _connect(self) -> MessageBus:
        while True:
            with contextlib.suppress(OSError):  # the daemon does not listen yet
                return await MessageBus(bus_address=self.address).connect()
            await asyncio.sleep(0.002)

    async def _is_owned(self, bus: MessageBus, name: str) -> bool:
        dbus = "org.freedesktop.DBus"
        question = Message(
            destination=dbus,
            path="/org/freedesktop/DBus",
            interface=dbus,
            member="NameHasOwner",
            signature="s",
            body=[name],
        )
        return bool((await bus.call(question)).body[0])


async def serve(supervisor: Supervisor) -> None:
    orders = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    loop.add_signal_handler(signal.SIGTERM, orders.feed_eof)
    systemd, facts = await supervisor.start()
    print(json.dumps(facts), flush=True)
    while order := await orders.readline():
        if order == b"wake\n":
            systemd.wake()


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="vacancy-logind-"))
    folder.chmod(0o755)
    supervisor = Supervisor(folder)
    try:
        with contextlib.suppress(BrokenPipeError):
            asyncio.run(serve(supervisor))
    finally:
        supervisor.stop()


if __name__ == "__main__":
    main()
