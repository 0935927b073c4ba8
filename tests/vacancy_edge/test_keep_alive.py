from __future__ import annotations

import msgspec
import pytest

from vacancy_edge import Refusal
from vacancy_edge.keep_alive import MAX_KEEP_ALIVE, NOT_SAID, KeepAlive, read_keep_alive

BOUND = KeepAlive(instead=b"%d" % MAX_KEEP_ALIVE)
AT_ONCE = KeepAlive(at_once=True)
KEPT = KeepAlive()


@pytest.mark.parametrize(
    "value",
    [
        "0",
        "0.0",
        "-0",
        "-0.0",
        "0e9",
        "1e-10",
        "0.999",
        '"0"',
        '"0s"',
        '"-0"',
        '"+0s"',
        '"0h0m0s"',
        '"999ms"',
        '"0.1ns"',
        '".5s"',
        '"\\u0030"',
        '"1us1ns"',
    ],
)
def test_less_than_a_second_is_at_once(value: str):
    assert read_keep_alive(msgspec.Raw(value.encode())) == AT_ONCE


@pytest.mark.parametrize(
    "value",
    [
        "1",
        "1.0",
        "300",
        "1800",
        "18e2",
        '"5m"',
        '"30m"',
        '"1s"',
        '"1.5m"',
        '"29m59s"',
        '"1m0.5s"',
        '"+5m"',
        '"1000000µs"',
        '"1000000\u03bcs"',
        '"1.s"',
    ],
)
def test_what_is_within_bounds_stays(value: str):
    assert read_keep_alive(msgspec.Raw(value.encode())) == KEPT


@pytest.mark.parametrize(
    "value",
    [
        "-1",
        "-1e-9",
        "-0.5",
        "1801",
        "1e9",
        "1e400",
        "-1e400",
        "9" * 100,
        '"-1s"',
        '"-1ns"',
        '"24h"',
        '"31m"',
        '"30m1s"',
        '"9999999999h"',
        '"-5m"',
    ],
)
def test_for_ever_and_too_long_are_the_bound(value: str):
    assert read_keep_alive(msgspec.Raw(value.encode())) == BOUND


@pytest.mark.parametrize(
    "value",
    [
        "true",
        "false",
        "[]",
        "{}",
        "[5]",
        '""',
        '"5"',
        '"5 m"',
        '"m"',
        '"."',
        '".s"',
        '"5d"',
        '"5m "',
        '"NaN"',
        '"inf"',
        '"-"',
        '"1e3s"',
        '"\u0665s"',
        '"' + "0" * 200 + 's"',
    ],
)
def test_what_go_cannot_read_is_refused(value: str):
    assert isinstance(read_keep_alive(msgspec.Raw(value.encode())), Refusal)


def test_null_and_nothing_are_not_said():
    assert read_keep_alive(None) is NOT_SAID
    assert read_keep_alive(msgspec.Raw(b"null")) is NOT_SAID


def test_the_bound_takes_at_most_two_bytes_more_than_what_it_replaces():
    """The helper moves the rest of a body by this."""
    assert len(BOUND.instead or b"") <= len(b"-1") + 2
