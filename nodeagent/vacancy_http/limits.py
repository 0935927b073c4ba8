"""What a listener and an upstream allow; every figure has its unit in its name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """Limits of one listener; the defaults are those of an agent's proxy.

    Attributes:
        header_read_s: seconds from the first byte of a head (on a new connection: from its opening) to its
            end.
        body_read_s: seconds for a whole request body, counted from the end of its head.
        body_idle_s: seconds without a byte of the body.
        write_stall_s: seconds in which a client takes nothing of what is ready for it.
        keep_alive_s: seconds a connection may rest between two requests.
        max_connections: open connections; at the cap one that is owed no reply makes room.
        max_head_bytes: bytes of a request head, final empty line included.
        max_headers: fields of a request head.
        max_body_bytes: bytes of a collected body; twice as much of a refused one is read and dropped.
        max_tunnels: open tunnels, those whose upstream has not answered yet included.
        tunnel_idle_s: seconds in which nothing goes through a tunnel, either way; also those in which the
            upstream has to answer.
    """

    header_read_s: float = 10.0
    body_read_s: float = 120.0
    body_idle_s: float = 20.0
    write_stall_s: float = 60.0
    keep_alive_s: float = 75.0
    max_connections: int = 256
    max_head_bytes: int = 65536
    max_headers: int = 100
    max_body_bytes: int = 64 << 20
    max_tunnels: int = 16
    tunnel_idle_s: float = 600.0


@dataclass(frozen=True, slots=True)
class UpstreamLimits:
    """Limits of one upstream.

    Attributes:
        connect_s: seconds for a connection to be made, name look-up and TLS included.
        idle_s: seconds a connection may rest in the pool and still be used again.
        response_head_s: seconds from the request to the end of the response's head; None waits for ever.
        max_idle: resting connections that are kept.
    """

    connect_s: float = 5.0
    idle_s: float = 30.0
    response_head_s: float | None = None
    max_idle: int = 256
