from __future__ import annotations

from vacancy_http import ListenerLimits, UpstreamLimits


def test_the_defaults_are_those_of_the_agents_proxy() -> None:
    limits = ListenerLimits()
    assert (limits.header_read_s, limits.body_read_s, limits.body_idle_s) == (10, 120, 20)
    assert (limits.write_stall_s, limits.keep_alive_s, limits.max_connections) == (60, 75, 256)
    assert (limits.max_head_bytes, limits.max_headers, limits.max_body_bytes) == (64 << 10, 100, 64 << 20)


def test_as_many_connections_rest_as_clients_may_be_connected() -> None:
    assert UpstreamLimits().max_idle >= ListenerLimits().max_connections
