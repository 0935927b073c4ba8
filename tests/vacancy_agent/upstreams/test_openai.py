from __future__ import annotations

import pytest

from vacancy_agent.upstreams.ask import Answer, AskError
from vacancy_agent.upstreams.openai import NoMetrics, Requests, ask_requests, requests_in

RUNNING = 'vllm:num_requests_running{engine="%d",model_name="m"} %s\n'
WAITING = 'vllm:num_requests_waiting{engine="%d",model_name="m"} %s\n'


def text(*values: tuple[str, str]) -> str:
    return "".join(
        RUNNING % (n, running) + WAITING % (n, waiting) for n, (running, waiting) in enumerate(values)
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    {
        "idle": (text(("0.0", "0.0")), Requests(0, 0)),
        "running": (text(("2.0", "0.0")), Requests(2, 0)),
        "waiting": (text(("0.0", "1.0")), Requests(0, 1)),
        "two engines": (text(("0.0", "0.0"), ("1.0", "3.0")), Requests(1, 3)),
        "no labels": ("vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n", Requests(0, 0)),
        "a brace in a label": (
            'vllm:num_requests_running{model_name="a}b"} 1.0\nvllm:num_requests_waiting 0\n',
            Requests(1, 0),
        ),
        "one is missing": (RUNNING % (0, "0.0"), NoMetrics()),
        "another server": ("go_goroutines 12\n", NoMetrics()),
        "nothing": ("", NoMetrics()),
        "names that only begin alike": (
            "vllm:num_requests_running_total 0\nvllm:num_requests_waiting_by_reason 0\n",
            NoMetrics(),
        ),
        "comments": (
            "# HELP vllm:num_requests_running 0\n# TYPE vllm:num_requests_waiting gauge\n",
            NoMetrics(),
        ),
    }.values(),
)
def test_sums_what_is_there_and_takes_nothing_for_idle(given: str, expected: object):
    assert requests_in(given) == expected


def test_only_zero_and_zero_is_none():
    assert Requests(0, 0).none
    assert not Requests(0, 1).none
    assert not Requests(1, 0).none


@pytest.mark.parametrize("value", ["", "many", "NaN", "-1.0"])
def test_a_value_that_is_no_number_is_an_error(value: str):
    with pytest.raises(AskError, match="vllm:num_requests_running"):
        requests_in(text((value, "0.0")))


class Server:
    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def get(self, path: str) -> Answer:
        self.asked.append(path)
        return self.answer


@pytest.mark.parametrize("status", [401, 404, 500])
async def test_a_server_that_does_not_show_its_metrics_has_none(status: int):
    assert await ask_requests(Server(Answer(status, text(("0", "0")).encode()))) == NoMetrics()


async def test_asks_for_metrics():
    server = Server(Answer(200, text(("1", "0")).encode()))
    assert await ask_requests(server) == Requests(1, 0)
    assert server.asked == ["/metrics"]
