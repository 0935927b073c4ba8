"""nginx twice: as the peer that no proxy in Python can beat, and as an upstream that is no bottleneck."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from benches.parts import LOOPBACK, Lab, Part, free_port

if TYPE_CHECKING:
    from collections.abc import Iterable

REPLY_BYTES = 1024
CONNECTIONS = 2048

FRAME = """\
{user}daemon off;
worker_processes 1;
pid {directory}/{name}.pid;
error_log stderr error;
events {{ worker_connections {connections}; multi_accept on; }}
http {{
  access_log off;
  default_type application/json;
  keepalive_requests 1000000000;
  keepalive_timeout 600s;
  client_max_body_size 128m;
  client_body_buffer_size 64k;
  client_body_temp_path {directory}/{name}-body;
  proxy_temp_path {directory}/{name}-proxy;
  fastcgi_temp_path {directory}/{name}-fastcgi;
  uwsgi_temp_path {directory}/{name}-uwsgi;
  scgi_temp_path {directory}/{name}-scgi;
{blocks}
}}
"""
UPSTREAM = """\
  server {{
    listen {host}:{port} backlog=2048;
    location = /metrics {{ return 404 ""; }}
    location = /v1/models {{ return 200 '{{"object":"list","data":[{{"id":"bench","object":"model"}}]}}'; }}
    location / {{ return 200 '{reply}'; }}
  }}"""
PROXY = """\
  upstream target {{ server {host}:{target}; keepalive 1024; keepalive_requests 1000000000; }}
  server {{
    listen {host}:{port} backlog=2048;
    location / {{ proxy_pass http://target; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}"""


def program() -> str | None:
    """Where nginx is, if it is."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def reply_body() -> str:
    """A completion of 1 KB as a server of the openai dialect sends it."""
    head = '{"id":"chatcmpl-1","object":"chat.completion","created":0,"model":"bench","choices":[{"index":0,'
    head += '"message":{"role":"assistant","content":"'
    tail = '"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}'
    return head + "y" * (REPLY_BYTES - len(head) - len(tail)) + tail


def _start(lab: Lab, name: str, blocks: Iterable[str], *, port: int, core: int) -> Part:
    binary = program()
    assert binary is not None
    config = lab.directory / f"{name}.conf"
    config.write_text(
        FRAME.format(
            user="user root;\n" if os.geteuid() == 0 else "",
            directory=lab.directory,
            name=name,
            connections=CONNECTIONS,
            blocks="\n".join(blocks),
        )
    )
    argv = [binary, "-p", str(lab.directory), "-e", "stderr", "-c", str(config)]
    return lab.start(name, argv, port=port, core=core)


def start_upstream(lab: Lab) -> int:
    """The upstream, on the load generator's core. Returns its port."""
    port = free_port()
    block = UPSTREAM.format(host=LOOPBACK, port=port, reply=reply_body())
    _start(lab, "upstream", [block], port=port, core=lab.load_core)
    return port


def start_proxy(lab: Lab, target: int) -> tuple[int, int]:
    """The peer, on the core of the proxy under test. Returns its port and its process."""
    port = free_port()
    block = PROXY.format(host=LOOPBACK, port=port, target=target)
    part = _start(lab, "nginx", [block], port=port, core=lab.proxy_core)
    return port, part.pid
