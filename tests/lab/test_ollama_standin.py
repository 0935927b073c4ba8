"""The stand-in for Ollama keeps to what the real one was seen doing (tests/fixtures/ollama)."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from standins.ollama_runners import seconds
from vacancy_agent.core.parse.ollama import parse_ps, parse_show

if TYPE_CHECKING:
    from collections.abc import Callable

    from standins.ollama_server import OllamaStandin

pytestmark = pytest.mark.component
RECORDED = Path(__file__).resolve().parents[1] / "fixtures" / "ollama"
ASK = {"model": "small", "prompt": "hi", "stream": False}


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / f"{name}.http").read_bytes().split(b"\r\n\r\n", 1)[1])
    return found


def generate(server: OllamaStandin, **body: object) -> dict[str, Any]:
    answer: dict[str, Any] = server.ask("POST", "/api/generate", {**ASK, **body})
    return answer


def wait_until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_answers_have_the_recorded_fields(ollama_standin: OllamaStandin) -> None:
    assert set(generate(ollama_standin)) <= set(recorded("generate"))
    (row,) = ollama_standin.ask("GET", "/api/ps")["models"]
    assert set(row) | {"parent_model"} == set(recorded("ps_loaded")["models"][0]) | {"parent_model"}
    assert row["name"] == recorded("ps_loaded")["models"][0]["name"]
    assert ollama_standin.ask("GET", "/api/version") == recorded("version")
    said = generate(ollama_standin, prompt="", keep_alive=0)
    assert (said["done_reason"], said["done"]) == ("unload", True)


def test_what_we_read_of_it(ollama_standin: OllamaStandin) -> None:
    generate(ollama_standin)
    body = json.dumps(ollama_standin.ask("GET", "/api/ps")).encode()
    (row,) = parse_ps(body)
    assert row.expires_at == pytest.approx(time.time() + 300, abs=5)
    shown = json.dumps(ollama_standin.ask("POST", "/api/show", {"model": "wide"})).encode()
    assert parse_show(shown).num_ctx == 1 << 20
    assert b"1.048576e+06" in shown


def test_other_runner_options_load_it_anew(ollama_standin: OllamaStandin) -> None:
    for options in ({}, {"num_ctx": 4096}, {"num_ctx": 2048}, {"num_ctx": 2048, "num_thread": 1}):
        generate(ollama_standin, options=options)
        generate(ollama_standin, options={**options, "temperature": 0})
    assert ollama_standin.report()["loads"] == ["small:latest 4096", "small:latest 2048", "small:latest 2048"]


def test_parallel_slots_show_a_multiple(ollama_standin: OllamaStandin) -> None:
    ollama_standin.behave(parallel=4)
    generate(ollama_standin, options={"num_ctx": 2048})
    generate(ollama_standin, options={"num_ctx": 2048})
    assert ollama_standin.report()["loads"] == ["small:latest 8192"]


def test_a_load_takes_the_cards_memory_and_an_unload_gives_it_back(ollama_standin: OllamaStandin) -> None:
    before = json.loads((ollama_standin_folder(ollama_standin) / "state.json").read_text())
    generate(ollama_standin)
    after = json.loads((ollama_standin_folder(ollama_standin) / "state.json").read_text())
    assert before["devices"][0]["memory.free"] - after["devices"][0]["memory.free"] == 8192
    generate(ollama_standin, prompt="", keep_alive=0)
    assert ollama_standin.report()["vram_mib"] == 0


def ollama_standin_folder(server: OllamaStandin) -> Path:
    assert server.smi is not None
    return server.smi.folder


def test_an_unload_lets_a_stream_run_on_with_the_model_listed(ollama_standin: OllamaStandin) -> None:
    ollama_standin.behave(every_s=0.1, tokens=15)
    running = threading.Thread(target=generate, args=(ollama_standin,))
    running.start()
    wait_until(lambda: ollama_standin.report()["working"] == 1)
    began = time.monotonic()
    assert generate(ollama_standin, prompt="", keep_alive=0)["done_reason"] == "unload"
    assert time.monotonic() - began < 1
    assert ollama_standin.report()["loaded"]
    running.join(10)
    assert not ollama_standin.report()["loaded"]


def test_an_unload_that_stays_listed(ollama_standin: OllamaStandin) -> None:
    ollama_standin.behave(unload="stays")
    generate(ollama_standin)
    generate(ollama_standin, prompt="", keep_alive=0)
    assert len(ollama_standin.report()["loaded"]) == 1
    ollama_standin.let_go()
    assert not ollama_standin.report()["loaded"]


def test_keep_alive_runs_from_the_last_end(ollama_standin: OllamaStandin) -> None:
    generate(ollama_standin, keep_alive="1ms")
    wait_until(lambda: not ollama_standin.report()["loaded"])
    assert [seconds(value) for value in (None, "10m", 5, "-1", "1.5h")] == [None, 600, 5, 1e10, 5400]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_v1_reads_no_options(ollama_standin: OllamaStandin, path: str) -> None:
    body = {"model": "small", "messages": [], "options": {"num_ctx": 9}}
    assert ollama_standin.ask("POST", path, body)["model"] == "small"
    assert ollama_standin.report()["loads"] == ["small:latest 4096"]


def test_work_on_a_prompt_goes_on_for_a_client_that_left(ollama_standin: OllamaStandin) -> None:
    ollama_standin.behave(prompt_s=1.5)
    body = json.dumps({**ASK, "stream": True}).encode()
    head = b"POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    with socket.create_connection(("127.0.0.1", ollama_standin.port)) as client:
        client.sendall(head + body)
        wait_until(lambda: ollama_standin.report()["working"])
    assert ollama_standin.report()["working"]
    wait_until(lambda: not ollama_standin.report()["working"])
