from __future__ import annotations

import json

import pytest

from standins.comfyui_recorded import NEW, OLD, body
from vacancy_agent.core.parse.comfyui import (
    CANCELS_ATOMICALLY,
    HAS_JOBS,
    INTERRUPTS_ONE,
    KEEPS_PROMPT_IDS,
    ComfyAnswerError,
    Device,
    PromptState,
    Release,
    parse_remaining,
    parse_submitted,
    parse_system_stats,
    release_of,
    state_in_history,
    state_of_job,
)

DONE_OLD, RUNNING_OLD = "e186e2ca-b3f5-4bda-be65-4619f2694c33", "5cd8a20c-d8a3-48c6-842f-ff1d766a3ccc"


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("0.3.64", Release(0, 3, 64)),
        ("v0.28.1", Release(0, 28, 1)),
        ("0.3.45-12-gdeadbee", Release(0, 3, 45)),
        ("0.26", Release(0, 26)),
        ("unknown", None),
        ("", None),
        (None, None),
        (3, None),
    ],
)
def test_a_release_is_compared_by_its_numbers(text: object, release: Release | None) -> None:
    assert release_of(text) == release


def test_the_releases_that_matter_are_in_order() -> None:
    assert KEEPS_PROMPT_IDS < INTERRUPTS_ONE < Release(0, 3, 64) < HAS_JOBS < CANCELS_ATOMICALLY < (0, 28, 1)


@pytest.mark.parametrize("release", [OLD, NEW])
def test_a_server_on_the_processor_gives_no_figure_to_credit(release: str) -> None:
    stats = parse_system_stats(body(release, "system_stats"))
    assert stats.release == release_of(release)
    assert [device.type for device in stats.devices] == ["cpu"]
    assert stats.devices[0].torch_vram_total == 25_276_502_016  # all of the machine's memory
    assert stats.cuda == ()


def test_of_several_devices_only_cuda_ones_count() -> None:
    document = json.loads(body(NEW, "system_stats"))
    card = {"type": "cuda", "index": 1, "torch_vram_total": 7, "torch_vram_free": 3}
    document["devices"] += [card, card | {"type": "mps"}]
    assert parse_system_stats(json.dumps(document).encode()).cuda == (Device("cuda", 1, 7, 3),)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"{}",
        b'{"system": {}, "devices": {}}',
        b'{"system": {}, "devices": [1]}',
        b'{"system": {}, "devices": [{"type": 1}]}',
        b'{"system": {}, "devices": [{"type": "cuda", "torch_vram_total": "7", "torch_vram_free": 3}]}',
        b'{"system": {}, "devices": [{"type": "cuda", "torch_vram_total": -7, "torch_vram_free": 3}]}',
        b'{"system": {}, "devices": [{"type": "cuda", "torch_vram_total": true, "torch_vram_free": 3}]}',
    ],
)
def test_stats_that_cannot_be_read_are_no_stats(answer: bytes) -> None:
    with pytest.raises(ComfyAnswerError):
        parse_system_stats(answer)


def test_a_server_that_tells_no_release_has_none() -> None:
    assert parse_system_stats(b'{"system": {}, "devices": []}').release is None


@pytest.mark.parametrize("release", [OLD, NEW])
def test_what_is_left_is_a_number(release: str) -> None:
    assert parse_remaining(body(release, "get_prompt")) == 0
    assert parse_remaining(body(release, "get_prompt_busy")) == 3


@pytest.mark.parametrize(
    "answer", [b"x", b"{}", b'{"exec_info": 3}', b'{"exec_info": {"queue_remaining": true}}']
)
def test_a_number_that_is_not_told_is_not_zero(answer: bytes) -> None:
    with pytest.raises(ComfyAnswerError):
        parse_remaining(answer)


def test_the_history_names_what_ended_and_is_silent_otherwise() -> None:
    assert state_in_history(DONE_OLD, body(OLD, "history_one")[:64]) is PromptState.ENDED
    assert state_in_history(RUNNING_OLD, body(OLD, "history_interrupted")[:64]) is PromptState.ENDED
    assert state_in_history(DONE_OLD, body(OLD, "history_unknown")) is PromptState.UNTOLD
    assert state_in_history(DONE_OLD, b'{"another": {}}') is PromptState.UNTOLD


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("jobs_pending_one", PromptState.THERE),
        ("jobs_cancelled_one", PromptState.ENDED),
        ("jobs_unknown", PromptState.UNTOLD),
        ("prompt_no_prompt", PromptState.UNTOLD),
    ],
)
def test_a_job_tells_its_state_in_the_first_bytes(name: str, state: PromptState) -> None:
    assert state_of_job(body(NEW, name)[:200]) is state


def test_a_state_that_nobody_knows_ends_nothing() -> None:
    assert state_of_job(b'{"id": "x", "status": "paused"}') is PromptState.UNTOLD
    assert state_of_job(b'{"id": "x", "status": "in_progress"') is PromptState.THERE


def test_the_answer_to_a_submission_names_its_prompt() -> None:
    assert parse_submitted(body(OLD, "prompt_ok_client_prompt_id")) == DONE_OLD
    for answer in (b"", b"[]", b"{}", b'{"prompt_id": 3}', b'{"prompt_id": ""}'):
        assert parse_submitted(answer) is None
