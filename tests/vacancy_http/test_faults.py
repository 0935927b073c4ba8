from __future__ import annotations

from vacancy_http.faults import FAULT_OF_ENDING, Ending, ProtocolFault


def test_every_fault_has_its_status() -> None:
    assert {fault: fault.status for fault in ProtocolFault} == {
        ProtocolFault.BAD_REQUEST: 400,
        ProtocolFault.HEADER_TIMEOUT: 408,
        ProtocolFault.BODY_TIMEOUT: 408,
        ProtocolFault.HEAD_TOO_LARGE: 431,
        ProtocolFault.BODY_TOO_LARGE: 413,
        ProtocolFault.BUDGET: 503,
        ProtocolFault.TUNNEL_CAP: 503,
        ProtocolFault.UPSTREAM_UNREACHABLE: 503,
        ProtocolFault.UPSTREAM_INVALID: 502,
        ProtocolFault.UPSTREAM_TIMEOUT: 504,
        ProtocolFault.UPSTREAM_DIED: 502,
    }


def test_every_failure_of_an_upstream_has_its_fault() -> None:
    assert set(FAULT_OF_ENDING) == {ending for ending in Ending if ending.startswith("upstream")}
