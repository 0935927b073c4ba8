"""HTTP/1.1 both ways on httptools: listener, upstream pool, pump. Knows nothing of lending.

Theory of operation
===================

A client's connection (`server_conn.py`) cuts one head out of what it receives, has it checked byte for byte
(`head_check.py`) and parsed (`request_parser.py`), and makes an `Exchange` of it (`exchange.py`). The
application gets
the exchange and does one of three things: answer, have the body collected (`body.py`, `chunked.py`), or
forward. A forwarded exchange is given to a connection of the upstream's pool (`upstream.py`,
`upstream_conn.py`), which writes the request, reads the response (`response_parser.py`) and pushes it piece
by piece through the exchange to the client's transport.

Everything is a callback of a transport. There is no task, no future, no queue and no timer per request:
back-pressure is `pause_writing` of one transport calling `pause_reading` of the other, time is a float that
one wheel looks at (`wheel.py`), and an end is a method call down the chain client connection - exchange -
upstream connection. So a client that leaves closes its upstream within the same turn of the loop, and so does
`Exchange.cancel`.

Most messages are like the one before on the same way: the same head but for the digits of its length, and
whole in one piece. They take a short way with few calls (`head_memo.whole_body`, then
`ServerConnection.data_received` and `UpstreamConnection._plain`): what a request costs is the number of
functions that run for it, more than what they do. Whatever differs in anything takes the full way, and a test
holds that both do the same.

What may follow what stands in three tables (`states.py`); each object walks its own table and raises when it
leaves it; where a test just made proves the step to be in the table, it is taken without a look.
Framing is refused rather than interpreted: what is accepted has one reading, and h11 reads it the same way. A
reply is either complete on the wire or visibly cut (the client's connection is reset); a connection to an
upstream is either provably at a message boundary or closed.

A WebSocket's handshake is a fourth thing: `Exchange.tunnel` (`tunnel.py`), where `tunnel_client.py` and
`tunnel_link.py` are the two ends. Any other Upgrade is treated as a plain request without its Upgrade field.
"""

from __future__ import annotations

from vacancy_http.application import Application, BodyBudget
from vacancy_http.body import Body
from vacancy_http.exchange import Exchange
from vacancy_http.faults import Ending, ProtocolFault, VacancyHttpError
from vacancy_http.headers import head_prefix
from vacancy_http.limits import ListenerLimits, UpstreamLimits
from vacancy_http.reply import Reply, ResponseHead
from vacancy_http.server import Counters, Listener
from vacancy_http.tunnel_handshake import asks_for_websocket, handshake_fault
from vacancy_http.upstream import Upstream

__all__ = [
    "Application",
    "Body",
    "BodyBudget",
    "Counters",
    "Ending",
    "Exchange",
    "Listener",
    "ListenerLimits",
    "ProtocolFault",
    "Reply",
    "ResponseHead",
    "Upstream",
    "UpstreamLimits",
    "VacancyHttpError",
    "asks_for_websocket",
    "handshake_fault",
    "head_prefix",
]
