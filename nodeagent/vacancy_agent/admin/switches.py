"""The switches' input: what a body must say, and errors that say what to change."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vacancy_agent.admin.debug import LONGEST_S as LONGEST_DEBUG
from vacancy_agent.core.facts import WallTime
from vacancy_api import durations

if TYPE_CHECKING:
    from vacancy_agent.admin.running import Running

LONGEST_PAUSE = 366 * 86400.0
"""Seconds; who wants longer wants no end."""


class WrongInputError(Exception):
    """The request is wrong; the message says what to change."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


async def pause(agent: Running, body: dict[str, Any], _name: str) -> None:
    """`{"for": "2h"}`, `{"until": "2026-12-24T18:00:00Z"}`, or `{}`: until resumed."""
    _only(body, {"for", "until"})
    if "for" in body and "until" in body:
        raise WrongInputError('give "for" or "until", not both')
    wall = agent.host.clock.wall()
    until = None
    if "for" in body:
        until = WallTime(wall + _duration(body["for"]))
    elif "until" in body:
        until = _time(body["until"])
        if not wall < until <= wall + LONGEST_PAUSE:
            raise WrongInputError(
                '"until" must lie in the future, at most a year ahead; leave it out for no end'
            )
    await agent.pause(until)


async def resume(agent: Running, body: dict[str, Any], _name: str) -> None:
    """`{}`."""
    _only(body, set())
    await agent.resume()


async def lending(agent: Running, body: dict[str, Any], _name: str) -> None:
    """`{"enabled": false}`."""
    await agent.set_lending(_enabled(body))


async def resource(agent: Running, body: dict[str, Any], name: str) -> None:
    """`{"enabled": false}` for one resource."""
    known = agent.host.board.settings.resources
    if name not in known:
        raise WrongInputError(f"there is no resource {name!r}; there are: {', '.join(known)}", 404)
    await agent.set_resource(name, _enabled(body))


async def debug(agent: Running, body: dict[str, Any], _name: str) -> None:
    """`{"for": "10m"}`: tell every request for so long; `{"for": "0s"}` ends it."""
    _only(body, {"for"})
    agent.debug.open(_seconds(body.get("for"), LONGEST_DEBUG, "an hour", least=0.0))


def _only(body: dict[str, Any], keys: set[str]) -> None:
    unknown = sorted(body.keys() - keys)
    if unknown:
        known = ", ".join(sorted(keys)) or "none"
        raise WrongInputError(f"unknown key {unknown[0]!r}; known keys: {known}")


def _enabled(body: dict[str, Any]) -> bool:
    _only(body, {"enabled"})
    enabled = body.get("enabled")
    if not isinstance(enabled, bool):
        raise WrongInputError('"enabled" must be true or false')
    return enabled


def _duration(value: object) -> float:
    return _seconds(value, LONGEST_PAUSE, "a year", least=math.ulp(0.0))


def _seconds(value: object, most: float, told: str, *, least: float) -> float:
    try:
        seconds = durations.seconds(value) if isinstance(value, str) else None
    except ValueError:
        seconds = None
    if seconds is None or not least <= seconds <= most:
        raise WrongInputError(f'"for" must be a duration such as 45m, 2h or 1h30m, at most {told}')
    return seconds


def _time(value: object) -> WallTime:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise WrongInputError('"until" must be an RFC 3339 time with its zone, such as 2026-12-24T18:00:00Z')
    return WallTime(moment.timestamp())
