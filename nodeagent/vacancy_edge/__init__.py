"""What stands at a border, for agent and gateway alike: tokens, body budget, judged body, refusals."""

from __future__ import annotations

from vacancy_edge import refusals
from vacancy_edge.bodies import Judged
from vacancy_edge.bodyhelper import LARGE, BodyHelper
from vacancy_edge.budget import Budget
from vacancy_edge.judged import is_judged, judge_body, judge_head, judge_plain, plain_model, retyped
from vacancy_edge.refusal import Refusal, refusal_reply
from vacancy_edge.tokens import Principal, Scope, TokenTable

__all__ = [
    "LARGE",
    "BodyHelper",
    "Budget",
    "Judged",
    "Principal",
    "Refusal",
    "Scope",
    "TokenTable",
    "is_judged",
    "judge_body",
    "judge_head",
    "judge_plain",
    "plain_model",
    "refusal_reply",
    "refusals",
    "retyped",
]
