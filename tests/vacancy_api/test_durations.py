from __future__ import annotations

import pytest

from vacancy_api import durations


@pytest.mark.parametrize(
    ("text", "length_s"),
    [
        ("0s", 0),
        ("30s", 30),
        ("1h30m", 5400),
        ("500ms", 0.5),
        ("1h2m3s4ms", 3723.004),
        ("90m", 5400),
        ("1m500ms", 60.5),
    ],
)
def test_lengths(text: str, length_s: float) -> None:
    assert durations.seconds(text) == length_s


@pytest.mark.parametrize(
    "text",
    [
        "",
        "30",
        "0",
        "s",
        "1.5h",
        "-1s",
        "+1s",
        "1s1m",
        "1m1m",
        " 1s",
        "1s ",
        "1s\n",
        "1S",
        "1d",
        "1us",
        "٣s",
        "1234567s",
        "1h " * 20,
    ],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(durations.DurationError, match="such as 30s"):
        durations.seconds(text)
