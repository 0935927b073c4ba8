"""PURE: route tables per dialect as data, matching, model names, and how a stream says that it ended."""

from __future__ import annotations

from vacancy_dialects.asks import PromptAsk, RunnerAsk
from vacancy_dialects.endings import EndWatch, needs_marker
from vacancy_dialects.names import canonical_model, is_cloud, names_a_source
from vacancy_dialects.registry import UnknownDialectError, table_for
from vacancy_dialects.replies import MAX_REWRITTEN, ReplyUnreadableError, rewrite_reply
from vacancy_dialects.routes import (
    WEBSOCKET,
    BodyRule,
    BodyShape,
    EndMark,
    Match,
    QueryRule,
    ReplyRule,
    Route,
    RouteClass,
)
from vacancy_dialects.table import RouteTable

__all__ = [
    "MAX_REWRITTEN",
    "WEBSOCKET",
    "BodyRule",
    "BodyShape",
    "EndMark",
    "EndWatch",
    "Match",
    "PromptAsk",
    "QueryRule",
    "ReplyRule",
    "ReplyUnreadableError",
    "Route",
    "RouteClass",
    "RouteTable",
    "RunnerAsk",
    "UnknownDialectError",
    "canonical_model",
    "is_cloud",
    "names_a_source",
    "needs_marker",
    "rewrite_reply",
    "table_for",
]
