"""aiohttp without the certificate authorities of the machine.

When it is imported, aiohttp makes a TLS context with every authority in it: 2 MiB of an agent whose servers
are on loopback, as a rule without TLS. So OpenSSL is shown no authorities for that moment, and whoever of the
agent speaks TLS gives a context of its own (`upstreams.ask`, `cluster.api`). Were one forgotten, its
handshake would fail: aiohttp's own context trusts nobody.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Where OpenSSL looks before its own places."""


@contextmanager
def without_authorities() -> Iterator[None]:
    """For the length of the block; it is for the start, while there is one thread."""
    before = {name: os.environ.get(name) for name in NAMES}
    os.environ.update(dict.fromkeys(NAMES, os.devnull))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
