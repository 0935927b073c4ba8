"""One spelling of PCI addresses: nvidia-smi has `00000000:01:00.0`, sysfs `0000:01:00.0`, people `1:0.0`."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})\.([0-7])", re.ASCII)


def normal_pci(text: str) -> str | None:
    """`dddd:bb:dd.f` in lower case as sysfs names the device, or None when `text` is no PCI address."""
    match = _ADDRESS.fullmatch(text.strip().lower())
    if match is None:
        return None
    domain, bus, device, function = (int(part or "0", 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function}"
