from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standins.nvidia_samples import Sample, samples
from vacancy_agent.core.parse.nvidia import NvidiaOutputError
from vacancy_agent.core.parse.nvidia_processes import parse_pmon


def by_id(sample: Sample) -> str:
    return sample.name


@pytest.mark.parametrize("sample", samples("pmon"), ids=by_id)
def test_recorded_pmon(sample: Sample) -> None:
    assert [[row.gpu_index, row.pid, row.sm] for row in parse_pmon(sample.output)] == sample.right


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"No devices were found\n", id="a message"),
        pytest.param(b"# gpu pid type\n0 1 C\n", id="no load column"),
        pytest.param(b"# gpu pid type sm\nx 1 C 3\n", id="no index"),
        pytest.param(b"# gpu pid type sm\n0 x C 3\n", id="no process id"),
        pytest.param(b"# gpu pid type sm\n0 12 G N/A\n", id="a load that cannot be read"),
        pytest.param(b"# gpu pid type sm\n0 13 G\n", id="a row that breaks off"),
    ],
)
def test_pmon_that_cannot_be_trusted(output: bytes) -> None:
    with pytest.raises(NvidiaOutputError):
        parse_pmon(output)


@settings(max_examples=100)
@given(output=st.binary(max_size=200))
def test_garbage_raises_nothing_else(output: bytes) -> None:
    with contextlib.suppress(NvidiaOutputError):
        parse_pmon(output)
