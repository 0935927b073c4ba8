"""Who may reach the agent, and the bounds of what a borrower can cost it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from vacancy_api.fields import Contract, DnsSubdomain, IpAddress, SecretKey, duration_between

Port = Annotated[int, Field(ge=1, le=65_535)]
ClientTimeout = Annotated[str, duration_between("1s", "1h")]
TunnelTimeout = Annotated[str, duration_between("1s", "24h")]


class SecretRef(Contract):
    """A Secret in the namespace of the host; alone: the directory `secrets/NAME` of the state directory."""

    name: DnsSubdomain = Field(description="Name of the Secret.")


class SecretKeyRef(Contract):
    """One key of a Secret; alone: the file `secrets/NAME/KEY` of the state directory."""

    name: DnsSubdomain = Field(description="Name of the Secret.")
    key: SecretKey = Field(default="token", description="Key in the Secret. Default token.")


class TlsSpec(Contract):
    """TLS on every listener of the agent."""

    secret_ref: SecretRef = Field(description="Secret with `tls.crt` and `tls.key` (type kubernetes.io/tls).")


class AccessSpec(Contract):
    """Where the agent listens, and who gets in."""

    listen: IpAddress | None = Field(
        default=None,
        description="Address that all listeners bind. Absent: 0.0.0.0 in a cluster, 127.0.0.1 alone.",
    )
    api_port: Port = Field(
        default=8470,
        description="Port of status, metrics and administration; 1 to 65535. Default 8470.",
    )
    trust_loopback: bool = Field(
        default=False,
        description="Callers on this machine need no token; web pages in its browsers do. Default false.",
    )
    allow_unauthenticated_remote: bool = Field(
        default=False,
        description="DANGEROUS: serve other machines without any token. Default false.",
    )
    tls: TlsSpec | None = Field(default=None, description="TLS on every listener. Absent: plain HTTP.")


class LimitsSpec(Contract):
    """Bounds of bodies, connections and waiting, per listener."""

    max_request_body_mib: int = Field(
        default=64,
        alias="maxRequestBodyMiB",
        ge=1,
        le=4096,
        description="Largest request body, MiB; 1 to 4096. Default 64.",
    )
    max_buffered_body_mib: int | None = Field(
        default=None,
        alias="maxBufferedBodyMiB",
        ge=1,
        le=65_536,
        description=(
            "Request bodies held at once, MiB; 1 to 65536, at least maxRequestBodyMiB. "
            "Default 256, or maxRequestBodyMiB where that is more."
        ),
    )
    max_connections: int = Field(
        default=256, ge=1, le=65_536, description="Open client connections; 1 to 65536. Default 256."
    )
    max_tunnels: int = Field(
        default=16, ge=0, le=65_536, description="Open WebSocket tunnels; 0 to 65536. Default 16."
    )
    header_read_timeout: ClientTimeout = Field(
        default="10s", description="Time a client has to send its request head; 1s to 1h. Default 10s."
    )
    body_read_timeout: ClientTimeout = Field(
        default="2m", description="Time a client has to send its whole body; 1s to 1h. Default 2m."
    )
    body_idle_timeout: ClientTimeout = Field(
        default="20s", description="Longest pause while a body arrives; 1s to 1h. Default 20s."
    )
    write_stall_timeout: ClientTimeout = Field(
        default="1m", description="Time a client may accept no byte of its response; 1s to 1h. Default 1m."
    )
    keep_alive_timeout: ClientTimeout = Field(
        default="75s", description="Time a connection may idle between requests; 1s to 1h. Default 75s."
    )
    tunnel_idle_timeout: TunnelTimeout = Field(
        default="10m", description="Time a WebSocket tunnel may be silent; 1s to 24h. Default 10m."
    )

    @property
    def buffered_body_mib(self) -> int:
        """`maxBufferedBodyMiB` with its default, which depends on the largest body."""
        return self.max_buffered_body_mib or max(256, self.max_request_body_mib)
