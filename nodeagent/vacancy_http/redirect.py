"""Redirects of an upstream, as the client may see them.

A `Location` that names the upstream's own address, or a loopback name with its port, becomes a path on the
proxy. The client must not learn the internal target, and could not reach it. Anything else is left as it is.
"""

from __future__ import annotations

import re

_ABSOLUTE = re.compile(
    rb"(?:(https?):)?//(?:[^/?#@]*@)?(\[[0-9A-Fa-f:.]+\]|[^/?#:@\[\]]*)(?::([0-9]{0,5}))?([/?#].*)?",
    re.IGNORECASE,
)
_DEFAULT_PORT = {b"http": 80, b"https": 443}


def is_loopback_name(host: str) -> bool:
    """Whether `host` (lower-cased, without brackets) is a name of this machine's loopback interface."""
    return (
        host in {"localhost", "::1", "0:0:0:0:0:0:0:1"}
        or host.startswith("127.")
        or host.endswith(".localhost")
    )


def rewrite_location(location: bytes, host: str, port: int, *, tls: bool) -> bytes:
    """The value to send in place of `location`, of an upstream at `host`:`port`."""
    found = _ABSOLUTE.fullmatch(location)
    if found is None:
        return location
    scheme, name, given_port, rest = found.groups()
    scheme = (scheme or (b"https" if tls else b"http")).lower()
    if (int(given_port) if given_port else _DEFAULT_PORT[scheme]) != port:
        return location
    named = name.decode("latin-1").lower().strip("[]").rstrip(".")
    if named != host.lower().strip("[]").rstrip(".") and not is_loopback_name(named):
        return location
    rest = rest or b"/"
    path = rest if rest.startswith(b"/") else b"/" + rest
    # Two leading slashes would name a host again: `//evil` in a Location is an address, not a path, and to a
    # browser so is `/\\evil`.
    return b"/" + path.lstrip(b"/\\") if path[1:2] in {b"/", b"\\"} else path
