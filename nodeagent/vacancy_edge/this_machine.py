"""Does a program of this machine ask, or a web page in a browser of this machine?

Invariant: where being on this machine stands in for a token (`trustLoopback`), a web page never gets in. A
browser connects from loopback like any program, and a page of any site may have it post plain text to any
port here. A page shows itself by its Origin, which browsers send with every request that is more than a plain
read; one whose name was made to point here (DNS rebinding) shows itself by the Host it asks for. Rejected: to
ask for a header that pages cannot set, since then no client could be used as it is.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def from_this_machine(peer: str | None, host: str | None, origin: str | None, *, tls: bool) -> bool:
    """Whether the request comes from a program of this machine.

    Args:
        peer: the address that the connection comes from.
        host: the Host field; None where there is none, as in HTTP/1.0.
        origin: the Origin field, None where there is none.
        tls: the connection is encrypted.
    """
    if not is_loopback(peer) or not (host is None or is_loopback(_name_of(host))):
        return False
    return same_origin(host, origin, tls=tls)


def same_origin(host: str | None, origin: str | None, *, tls: bool) -> bool:
    """Whether no web page sends this, or a page of the very address it is sent to; arguments as above."""
    return origin is None or origin == f"{'https' if tls else 'http'}://{host}"


def is_loopback(host: str | None) -> bool:
    """Whether this is `localhost` or a loopback address."""
    try:
        return host == "localhost" or (host is not None and ip_address(host.partition("%")[0]).is_loopback)
    except ValueError:
        return False


def _name_of(host: str) -> str | None:
    """The name or address in a Host field."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
