"""One request to a `LendingRig`: what a borrower is told, or what the upstream gets of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from standins.http_text import answer, head_of, reply

if TYPE_CHECKING:
    from standins.http_text import Answer
    from standins.lending_rig import LendingRig


def ask(rig: LendingRig, raw: bytes) -> Answer | None:
    """The proxy's own answer; None: it went to the upstream."""
    got = rig.port.connect(raw).got()
    return answer(got) if got else None


def forwarded(rig: LendingRig, raw: bytes) -> tuple[str, dict[str, str], bytes]:
    """What the upstream gets of it; it answers."""
    client = rig.port.connect(raw)
    refused = client.got()
    assert refused == b"", refused
    server = rig.port.link()
    seen = head_of(server.got())
    server.send(reply())
    return seen
