"""Stands in for nvidia-smi, answering from a folder's `state.json`. Imports little: it is run often."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def main(folder: Path, arguments: list[str]) -> int:
    state = json.loads((folder / "state.json").read_text())
    with (folder / "calls").open("a") as calls:
        calls.write(json.dumps(arguments) + "\n")
    misbehave(state["pmon_mode"] if arguments[:1] == ["pmon"] else state["mode"])
    chosen = arguments[arguments.index("-i") + 1] if "-i" in arguments else None
    if arguments[:1] == ["pmon"]:
        return pmon(state, chosen)
    if "file" in state:
        sys.stdout.buffer.write(Path(state["file"]).read_bytes())
        sys.stdout.flush()
        if state["returncode"] < 0:
            os.kill(os.getpid(), -state["returncode"])
        return int(state["returncode"])
    options = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    return query(state, options["--query-gpu"].split(","), chosen)


def misbehave(mode: str) -> None:
    if mode == "ignore-term":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode == "orphan":  # a grandchild keeps the pipes open; the program itself ends well
        subprocess.Popen(["sleep", "300"])
    if mode == "orphan-hang":
        subprocess.Popen(["sleep", "300"])
        print("partial", flush=True)
    if mode in ("hang", "ignore-term", "orphan-hang"):
        time.sleep(300)
    if mode == "flood":
        while True:
            sys.stdout.buffer.write(b"x" * 65536)
    if mode.startswith("slow:"):
        time.sleep(float(mode[5:]))


def query(state: dict, fields: list[str], chosen: "str | None") -> int:
    for field in fields:
        if field in state["unsupported"]:
            print(f'Field "{field}" is not a valid field to query.\n')
            return 2
    devices = [d for d in state["devices"] if chosen is None or is_device(d, chosen)]
    if not devices:
        print("No devices were found")
        return 6
    for device in devices:
        print(", ".join(str(device.get(field, "[N/A]")) for field in fields))
    return 0


def pmon(state: dict, chosen: "str | None") -> int:
    """One sample of the processes of one device, in the columns of driver 550."""
    if state["processes"] is None:
        print("Not supported on the device(s)\nFailed to process command line.")
        return 2
    found = [(index, d) for index, d in enumerate(state["devices"]) if chosen is None or is_device(d, chosen)]
    if not found:
        print("No devices were found")
        return 6
    print("# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command ")
    print("# Idx           #    C/G      %      %      %      %      %      %    name ")
    for index, device in found:
        rows = [one for one in state["processes"] if one["uuid"] == device["uuid"]]
        for one in rows or [{"pid": "-", "sm": "-", "type": "-", "name": "-"}]:
            cells = f"{index:5} {one['pid']:>10} {one['type']:>6} {one['sm']:>6}"
            print(cells + "      -" * 5 + f"    {one['name']}")
    return 0


def is_device(device: dict, chosen: str) -> bool:
    return chosen == device["uuid"] or device["pci.bus_id"].lower().endswith(chosen)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
