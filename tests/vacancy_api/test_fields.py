from __future__ import annotations

import zoneinfo
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from vacancy_api import fields


def judge(kind: Any, text: str) -> str:
    try:
        TypeAdapter(kind).validate_python(text)
    except ValidationError as error:
        return error.errors()[0]["msg"]
    return "ok"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (fields.DnsLabel, "a-1"),
        (fields.DnsLabel, "a" * 63),
        (fields.DnsSubdomain, "a.b-c.d"),
        (fields.ServiceName, "llm"),
        (fields.MacAddress, "00-1A-2b-3c-4d-5E"),
        (fields.DayTime, "23:59"),
        (fields.GpuDevice, "GPU-5c89852c-d268-4dfc-8d9a-7b3d3a9a1b2c"),
        (fields.GpuDevice, "00000000:01:00.0"),
        (fields.GpuDevice, "0000:c1:00.0"),
        (fields.IpAddress, "::"),
        (fields.ReachableIpAddress, "fd00::1"),
        (fields.Rfc3339, "2030-02-28T23:59:59.5+02:00"),
        (fields.TimeZone, "America/Argentina/Buenos_Aires"),
        (fields.TimeZone, "UTC"),
        (fields.ProgramName, "Battle.net Launcher.exe"),
        (fields.ModelName, "hf.co/Qwen/Qwen3-8B:Q4_K_M"),
    ],
)
def test_accepted(kind: Any, text: str) -> None:
    assert judge(kind, text) == "ok"


@pytest.mark.parametrize(
    ("kind", "text", "piece"),
    [
        (fields.DnsLabel, "", "DNS label"),
        (fields.DnsLabel, "a\n", "DNS label"),
        (fields.DnsLabel, "a" * 64, "longer than 63"),
        (fields.DnsSubdomain, "a..b", "DNS subdomain"),
        (fields.ServiceName, "1a", "starting with a letter"),
        (fields.MacAddress, "00:1a:2b:3c:4d", "such as 00:1a"),
        (fields.DayTime, "24:00", "time of day"),
        (fields.GpuDevice, "0", "PCI address"),
        (fields.IpAddress, "localhost", "IP address"),
        (fields.IpAddress, "fe80::1%eth0", "zone"),
        (fields.ReachableIpAddress, "127.0.0.1", "other machines"),
        (fields.ReachableIpAddress, "169.254.1.1", "other machines"),
        (fields.ReachableIpAddress, "224.0.0.1", "other machines"),
        (fields.ReachableIpAddress, "::ffff:10.0.0.1", "write 10.0.0.1"),
        (fields.ReachableIpAddress, "host.example", "the machine's IP address"),
        (fields.Rfc3339, "2030-02-30T00:00:00Z", "RFC 3339"),
        (fields.Rfc3339, "2030-02-03T00:00:00", "with a zone"),
        (fields.Rfc3339, "20300203T000000Z", "RFC 3339"),
        (fields.TimeZone, "Europe/Berln", "did you mean Europe/Berlin?"),
        (fields.TimeZone, "../../etc/passwd", "IANA"),
        (fields.TimeZone, "CEST", "IANA"),
        (fields.ProgramName, "C:\\Games\\game.exe", "write 'game.exe'"),
        (fields.ProgramName, " ", "surrounding blanks"),
        (fields.ModelName, " m", "blank or padded"),
    ],
)
def test_refused_with_what_to_write(kind: Any, text: str, piece: str) -> None:
    assert piece in judge(kind, text)


def test_a_machine_without_a_time_zone_database_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_known(name: str) -> None:
        raise zoneinfo.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(zoneinfo, "ZoneInfo", none_known)
    assert "install the package tzdata" in judge(fields.TimeZone, "Europe/Berlin")


def test_a_message_may_hold_braces() -> None:
    assert judge(fields.DnsLabel, "{name}").endswith("got '{name}'")


def test_json_names() -> None:
    assert fields.camel("min_free_mib") == "minFreeMiB"
    assert fields.camel("api_port") == "apiPort"


def test_the_schema_carries_bounds_and_the_converters_hint() -> None:
    schema = TypeAdapter(fields.Rfc3339).json_schema()
    assert schema == {"type": "string", "maxLength": 40, "x-vacancy-check": {"kind": "rfc3339"}}
