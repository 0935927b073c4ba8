"""A sysfs and a /proc of files on disk, with AMD GPUs and processes that have them open."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

CARD, APU = "0000:03:00.0", "0000:65:00.0"
MIB = 1 << 20


class GpuTree:
    """`devices` and `proc` are what the agent takes for the machine's."""

    def __init__(self, folder: Path) -> None:
        self.devices = folder / "devices"
        self.proc = folder / "proc"
        self.devices.mkdir(parents=True)
        self.proc.mkdir()
        (self.proc / "1" / "fd").mkdir(parents=True)
        (self.proc / "1" / "fdinfo").mkdir()
        (self.proc / "meminfo").write_text("no process\n")

    def card(
        self,
        pci: str = CARD,
        *,
        vram: tuple[int, int] = (16_368, 900),
        gtt: tuple[int, int] = (15_900, 60),
        busy: int | str | None = 0,
        power: str = "active",
        vendor: str = "0x1002",
    ) -> Path:
        """A GPU; memory as (total, used) in MiB, `busy` None: the driver does not tell."""
        device = self.devices / pci
        (device / "power").mkdir(parents=True, exist_ok=True)
        (device / "vendor").write_text(f"{vendor}\n")
        (device / "power" / "runtime_status").write_text(f"{power}\n")
        for kind, (total, used) in (("vram", vram), ("gtt", gtt)):
            (device / f"mem_info_{kind}_total").write_text(f"{total * MIB}\n")
            (device / f"mem_info_{kind}_used").write_text(f"{used * MIB}\n")
        (device / "gpu_busy_percent").unlink(missing_ok=True)
        if busy is not None:
            (device / "gpu_busy_percent").write_text(f"{busy}\n")
        return device

    def process(self, pid: int, *, parent: int = 1, started: int = 1000, name: str = "game") -> Path:
        """A process without any GPU."""
        folder = self.proc / str(pid)
        (folder / "fd").mkdir(parents=True, exist_ok=True)
        (folder / "fdinfo").mkdir(exist_ok=True)
        rest = " ".join(["0"] * 17)
        (folder / "stat").write_text(f"{pid} ({name}) S {parent} {rest} {started} 0 0\n")
        if not (folder / "fd" / "0").is_symlink():
            (folder / "fd" / "0").symlink_to("/dev/null")
        return folder

    def opens(
        self, pid: int, client: int, *, fd: int = 5, pci: str = CARD, text: str | None = None, **ns: int
    ) -> None:
        """The process has a GPU open, as this client with these nanoseconds by engine."""
        folder = self.process(pid) if not (self.proc / str(pid)).exists() else self.proc / str(pid)
        link = folder / "fd" / str(fd)
        if not link.is_symlink():
            link.symlink_to("/dev/dri/renderD128")
        (folder / "fdinfo" / str(fd)).write_text(text if text is not None else amdgpu(client, pci, **ns))


def amdgpu(client: int, pci: str = CARD, **ns: int) -> str:
    """What amdgpu shows of an open device."""
    engines = "".join(f"drm-engine-{name}:\t{used} ns\n" for name, used in ns.items())
    return (
        "pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t741\n"
        f"drm-driver:\tamdgpu\ndrm-client-id:\t{client}\ndrm-pdev:\t{pci}\n"
        f"pasid:\t32771\ndrm-memory-vram:\t178632 KiB\n{engines}"
    )
