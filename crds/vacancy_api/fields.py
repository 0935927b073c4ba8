"""The base of every contract model, and the kinds of text in them.

A kind of text is one `TextRule`: what it must look like, in words that say what to write instead, and what
the generated schema says about it. `x-vacancy-check` in that schema is for the converter, which turns it into
the CEL rule that JSON schema has no keyword for. Rejected: pydantic's own pattern constraint, whose message
quotes a regular expression at people.
"""

from __future__ import annotations

import ipaddress
import re
import zoneinfo
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError, core_schema

from vacancy_api import durations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler

COMPLAINT = "vacancy"
"""`type` of every validation error whose message is already written for people."""


def complaint(message: str) -> PydanticCustomError:
    """A validation error with this message, braces and all."""
    return PydanticCustomError(COMPLAINT, "{message}", {"message": message})


def camel(name: str) -> str:
    """The JSON name of a field: camelCase, and MiB as the unit is written."""
    return re.sub("Mib$", "MiB", to_camel(name))


class Contract(BaseModel):
    """Base of the contract models: immutable, no conversion between types, unknown keys are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, alias_generator=camel)


@dataclass(frozen=True, eq=False)
class TextRule:
    """One kind of text. `problem` returns what is wrong with a text and what to write, or None."""

    problem: Callable[[str], str | None]
    max_length: int
    schema: Mapping[str, Any] = field(default_factory=dict)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Pydantic's hook: the text is checked after it is known to be one."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Pydantic's hook: bounds and the converter's hint."""
        return {**handler(schema), "maxLength": self.max_length, **self.schema}

    def _check(self, text: str) -> str:
        found = (
            f"is longer than {self.max_length} characters"
            if len(text) > self.max_length
            else self.problem(text)
        )
        if found is not None:
            raise complaint(found)
        return text


def matching(pattern: str, expected: str, max_length: int) -> TextRule:
    """Text that matches an anchored pattern; `expected` completes the sentence "must be ..."."""
    shape = re.compile(pattern.removesuffix("$") + r"\Z")

    def problem(text: str) -> str | None:
        return None if shape.match(text) else f"must be {expected}; got {text!r}"

    check = {"kind": "pattern", "expected": expected}
    return TextRule(problem, max_length, {"pattern": pattern, "minLength": 1, "x-vacancy-check": check})


def duration_between(low: str, high: str) -> TextRule:
    """A duration from `low` to `high`, both included."""
    low_ms, high_ms = durations.milliseconds(low), durations.milliseconds(high)

    def problem(text: str) -> str | None:
        try:
            length = durations.milliseconds(text)
        except durations.DurationError as error:
            return f"{text!r} {error}"
        return None if low_ms <= length <= high_ms else f"must be between {low} and {high}; got {text}"

    return TextRule(
        problem, durations.MAX_LENGTH, {"x-vacancy-check": {"kind": "duration", "min": low, "max": high}}
    )


_ANY_ADDRESS = "must be an IP address such as 0.0.0.0, :: or 127.0.0.1"
_BROADCAST = "255.255.255.255"


def ip_problem(text: str) -> str | None:
    """What is wrong with an IP address that the API server would not take as one; None where nothing is."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return f"{_ANY_ADDRESS}; got {text!r}"
    if "%" in text:
        return "must not carry a zone: remove the % and what follows"
    mapped = getattr(address, "ipv4_mapped", None)
    return f"is an IPv4 address written as IPv6: write {mapped}" if mapped is not None else None


def _address_problem(text: str) -> str | None:
    problem = ip_problem(text)
    if problem is not None:
        return problem.replace(_ANY_ADDRESS, "must be the machine's IP address, such as 192.168.1.20")
    address = ipaddress.ip_address(text)
    local = address.is_loopback or address.is_unspecified or address.is_link_local
    if local or address.is_multicast or text == _BROADCAST:
        return f"must be an address that other machines can reach; {text} is not one"
    return None


_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)\Z", re.ASCII)


def _time_problem(text: str) -> str | None:
    expected = f"must be an RFC 3339 time with a zone, such as 2030-01-31T18:00:00Z; got {text!r}"
    if not _RFC3339.match(text):
        return expected
    try:
        datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return expected
    return None


_ZONE = re.compile(r"[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*\Z")


def _zone_exists(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
        return False
    return True


def _zone_problem(text: str) -> str | None:
    if _ZONE.match(text) and _zone_exists(text):
        return None
    if not _zone_exists("UTC"):
        return "cannot be judged: this machine has no time zone database; install the package tzdata"
    near = get_close_matches(text, zoneinfo.available_timezones(), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"must be an IANA time zone such as Europe/Berlin; got {text!r}{hint}"


_BLANKS = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""White space as Unicode and the API server have it; Python counts four control characters more."""


def _is_trimmed(text: str) -> bool:
    return text != "" and text == text.strip(_BLANKS)


def _program_problem(text: str) -> str | None:
    if not _is_trimmed(text):
        return f"must be a program's name without surrounding blanks; got {text!r}"
    name = text.replace("\\", "/").rpartition("/")[2]
    return None if name == text else f"must be a program's name, not a path: write {name!r}"


def _nonblank_problem(text: str) -> str | None:
    return None if _is_trimmed(text) else f"must not be blank or padded; got {text!r}"


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_WORDS = "lower-case letters, digits and '-', starting and ending with a letter or digit"
_SUBDOMAIN = matching(
    rf"^{_LABEL}(\.{_LABEL})*$", f"a DNS subdomain: {_LABEL_WORDS}, parts joined by '.'", 253
)
subdomain_problem = _SUBDOMAIN.problem
"""What is wrong with a text as a DNS subdomain; None where nothing is."""

DnsLabel = Annotated[str, matching(f"^{_LABEL}$", f"a DNS label: {_LABEL_WORDS}", 63)]
ServiceName = Annotated[
    str,
    matching(
        "^[a-z]([-a-z0-9]*[a-z0-9])?$",
        "a Service name: lower-case letters, digits and '-', starting with a letter, not ending with '-'",
        63,
    ),
]
DnsSubdomain = Annotated[str, _SUBDOMAIN]
SecretKey = Annotated[
    str, matching("^[-._a-zA-Z0-9]+$", "a key of a Secret: letters, digits, '-', '_' and '.'", 253)
]
MacAddress = Annotated[
    str,
    matching("^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}$", "a MAC address such as 00:1a:2b:3c:4d:5e", 17),
]
DayTime = Annotated[
    str, matching("^([01][0-9]|2[0-3]):[0-5][0-9]$", 'a time of day from "00:00" to "23:59"', 5)
]
GpuDevice = Annotated[
    str,
    matching(
        r"^(GPU-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])$",
        "a GPU's UUID as `nvidia-smi -L` prints it (GPU-...) or a PCI address such as 0000:01:00.0",
        64,
    ),
]
IpAddress = Annotated[str, TextRule(ip_problem, 45, {"x-vacancy-check": {"kind": "ip"}})]
ReachableIpAddress = Annotated[
    str, TextRule(_address_problem, 45, {"x-vacancy-check": {"kind": "reachable-ip"}})
]
Rfc3339 = Annotated[str, TextRule(_time_problem, 40, {"x-vacancy-check": {"kind": "rfc3339"}})]
TimeZone = Annotated[str, TextRule(_zone_problem, 64, {"x-vacancy-check": {"kind": "time-zone"}})]
ProgramName = Annotated[str, TextRule(_program_problem, 255, {"x-vacancy-check": {"kind": "program"}})]
ModelName = Annotated[str, TextRule(_nonblank_problem, 255, {"x-vacancy-check": {"kind": "nonblank"}})]
