from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standins.nvidia_samples import Sample, samples
from vacancy_agent.core.facts import MiB, Percent
from vacancy_agent.core.parse.nvidia import (
    FIELDS,
    FaultKind,
    GpuFault,
    GpuIdentity,
    GpuReading,
    NvidiaOutputError,
    first_line,
    parse_gpus,
    unsupported_field,
)

QUERIES = samples("query-gpu")
UUID = "GPU-0a11c0de-0000-4000-8000-000000000000"
OTHER = "GPU-0a11c0de-0000-4000-8000-000000000001"


def by_id(sample: Sample) -> str:
    return sample.name


def summary(sample: Sample) -> object:
    """What the parser makes of a sample, in the words of the index."""
    rows: dict[str, object] = {}
    for row in parse_gpus(sample.output, sample.fields):
        if isinstance(row, GpuFault):
            rows[row.identity.uuid] = row.kind.value
        else:
            rows[row.identity.uuid] = {"free": row.free, "util": row.utilization}
    return rows


@pytest.mark.parametrize("sample", [s for s in QUERIES if s.right != "unknown"], ids=by_id)
def test_recorded_samples_that_can_be_read(sample: Sample) -> None:
    assert summary(sample) == sample.right


@pytest.mark.parametrize("sample", [s for s in QUERIES if s.right == "unknown"], ids=by_id)
def test_recorded_samples_that_cannot_be_read_are_errors_even_if_the_exit_status_were_lost(
    sample: Sample,
) -> None:
    with pytest.raises(NvidiaOutputError):
        parse_gpus(sample.output, sample.fields)


def row(**changed: str) -> bytes:
    cells = {
        "uuid": UUID,
        "pci.bus_id": "00000000:01:00.0",
        "memory.total": "24564",
        "memory.used": "1200",
        "memory.free": "23001",
        "utilization.gpu": "4",
        "mig.mode.current": "[N/A]",
        "driver_version": "570.86.10",
        "name": "NVIDIA GeForce RTX 4090",
    }
    cells.update(
        {field.replace("_", ".", 1) if field not in cells else field: v for field, v in changed.items()}
    )
    return (", ".join(cells.values()) + "\n").encode()


def test_the_whole_query() -> None:
    assert parse_gpus(row(), FIELDS) == (
        GpuReading(
            GpuIdentity(UUID, "0000:01:00.0"),
            MiB(23001),
            MiB(24564),
            Percent(4.0),
            "570.86.10",
            "NVIDIA GeForce RTX 4090",
        ),
    )


def test_a_partitioned_card_is_a_fault() -> None:
    (fault,) = parse_gpus(row(**{"mig.mode.current": "Enabled"}), FIELDS)
    assert isinstance(fault, GpuFault)
    assert fault.kind is FaultKind.MIG


@pytest.mark.parametrize("mode", ["Disabled", "[N/A]", "[Not Supported]", ""])
def test_a_card_that_is_not_partitioned_is_read(mode: str) -> None:
    assert isinstance(parse_gpus(row(**{"mig.mode.current": mode}), FIELDS)[0], GpuReading)


@pytest.mark.parametrize("token", ["ERR!", "[ERR!]", "[GPU is lost]", "GPU is lost", "[GPU requires reset]"])
@pytest.mark.parametrize("field", ["memory.used", "utilization.gpu", "driver_version", "name"])
def test_a_fatal_token_anywhere_poisons_its_row_and_no_other(token: str, field: str) -> None:
    other = row(uuid=OTHER, **{"pci.bus_id": "00000000:02:00.0"})
    bad, good = parse_gpus(row(**{field: token}) + other, FIELDS)
    assert isinstance(bad, GpuFault)
    assert bad.identity == GpuIdentity(UUID, "0000:01:00.0")
    assert isinstance(good, GpuReading)


@pytest.mark.parametrize(
    "token", ["[N/A]", "[Not Supported]", "[Unknown Error]", "[Insufficient Permissions]", "-1", "٣"]
)
def test_a_missing_memory_cell_is_never_a_number(token: str) -> None:
    for field in ("memory.free", "memory.total"):
        (fault,) = parse_gpus(row(**{field: token}), FIELDS)
        assert isinstance(fault, GpuFault)
        assert fault.kind is FaultKind.NO_MEMORY
        assert token in fault.why


def test_figures_that_contradict_each_other_are_no_reading() -> None:
    (fault,) = parse_gpus(row(**{"memory.total": "100"}), FIELDS)
    assert isinstance(fault, GpuFault)
    (fault,) = parse_gpus(row(**{"memory.total": "0", "memory.free": "0"}), FIELDS)
    assert isinstance(fault, GpuFault)
    (reading,) = parse_gpus(row(**{"utilization.gpu": "101"}), FIELDS)
    assert isinstance(reading, GpuReading)
    assert reading.utilization is None


def test_a_full_card_really_has_nothing_free() -> None:
    (reading,) = parse_gpus(row(**{"memory.free": "0"}), FIELDS)
    assert isinstance(reading, GpuReading)
    assert reading.free == 0


def test_memory_used_may_be_missing_because_nothing_is_judged_by_it() -> None:
    assert isinstance(parse_gpus(row(**{"memory.used": "[N/A]"}), FIELDS)[0], GpuReading)


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\n\r\n", id="blank lines"),
        pytest.param(row() + row(), id="the same device twice"),
        pytest.param(row() + row(uuid=OTHER), id="the same address twice"),
        pytest.param(row(uuid="[N/A]"), id="no UUID"),
        pytest.param(row(uuid="0"), id="an index instead of a UUID"),
        pytest.param(row()[:40], id="cut short"),
        pytest.param(row() + b"Segmentation fault\n", id="a message behind a row"),
        pytest.param(", ".join(FIELDS).encode(), id="a header alone"),
    ],
)
def test_output_that_cannot_be_trusted(output: bytes) -> None:
    with pytest.raises(NvidiaOutputError):
        parse_gpus(output, FIELDS)


def test_without_free_text_at_the_end_a_comma_too_many_is_an_error() -> None:
    fields = ("uuid", "memory.total", "memory.free")
    assert len(parse_gpus(f"{UUID}, 10, 5".encode(), fields)) == 1
    with pytest.raises(NvidiaOutputError):
        parse_gpus(f"{UUID}, 10, 5, 7".encode(), fields)


def test_a_garbled_name_may_contain_what_unicode_calls_a_line_end() -> None:
    (reading,) = parse_gpus(row(name="A\u2028B\x85C\x0bD"), FIELDS)
    assert isinstance(reading, GpuReading)


@pytest.mark.parametrize(
    ("device", "same"),
    [
        (UUID, True),
        (UUID.lower(), True),
        ("0000:01:00.0", True),
        ("00000000:01:00.0", True),
        ("01:00.0", True),
        ("02:00.0", False),
        (OTHER, False),
        ("0", False),
        ("", False),
    ],
)
def test_identity(device: str, same: bool) -> None:
    assert GpuIdentity(UUID, "0000:01:00.0").matches(device) is same


def test_an_unknown_address_matches_no_address() -> None:
    assert not GpuIdentity(UUID, None).matches("01:00.0")


def test_what_an_old_driver_refuses() -> None:
    assert (
        unsupported_field(b'Field "mig.mode.current" is not a valid field to query.\n\n')
        == "mig.mode.current"
    )
    assert unsupported_field(b"No devices were found\n") is None


def test_the_message_for_people() -> None:
    assert first_line(b"\nNo devices were found\nmore\n") == "No devices were found"
    assert first_line(b" \n") == "it printed nothing"
    assert len(first_line(b"x" * 10_000)) == 160


NUMBERS = st.sampled_from(["0", "24564", "[N/A]", "ERR!", "12 MiB", "7 %", "1e9", "-3", "nan", "GPU is lost"])


@settings(max_examples=200)
@given(
    cells=st.lists(st.lists(NUMBERS, min_size=6, max_size=6), min_size=1, max_size=3),
    noise=st.binary(max_size=40),
)
def test_every_number_that_comes_out_was_printed(cells: list[list[str]], noise: bytes) -> None:
    lines = [", ".join([f"GPU-{i}", f"01:0{i}.0", *line, "name"]) for i, line in enumerate(cells)]
    try:
        rows = parse_gpus("\n".join(lines).encode() + noise, FIELDS)
    except NvidiaOutputError:
        return
    for line, parsed in zip(cells, rows, strict=True):
        if isinstance(parsed, GpuReading):
            assert str(parsed.free) == line[2].removesuffix(" MiB")
            assert str(parsed.total) == line[0].removesuffix(" MiB")


@settings(max_examples=200)
@given(output=st.binary(max_size=400))
def test_garbage_is_an_error_and_nothing_else(output: bytes) -> None:
    with pytest.raises(NvidiaOutputError):
        parse_gpus(output, FIELDS)


@pytest.mark.parametrize("cell", ["7 %", "7 GiB", "7.5", "1e3", "+7", "7 MiB MiB"])
def test_a_number_in_another_unit_is_no_memory(cell: str) -> None:
    assert isinstance(parse_gpus(row(**{"memory.free": cell}), FIELDS)[0], GpuFault)
