"""What a kind of text must look like, as a CEL rule with a message that says what to write.

A pattern in the schema would be refused with "should match '^[a-z...'", which tells people a regular
expression; so each check is one rule with words. The kinds are those of `x-vacancy-check` (`fields`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vacancy_api import durations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class SchemaError(ValueError):
    """A model cannot be expressed as a custom resource; the message names the place."""


_RFC3339 = (
    r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"([.][0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
_TRIMMED = "size(self) > 0 && self.trim() == self"
_ZONE = "^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$"
_PORT = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_NUMBER = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_HOST = r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?)"


def quoted(text: str) -> str:
    """`text` as a string literal of CEL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _pattern(schema: Mapping[str, Any]) -> tuple[str, str]:
    return f"self.matches({quoted(schema['pattern'])})", f"must be {schema['x-vacancy-check']['expected']}"


def _duration(schema: Mapping[str, Any]) -> tuple[str, str]:
    low, high = (schema["x-vacancy-check"][key] for key in ("min", "max"))
    rule = (
        f"size(self) > 0 && self.matches({quoted(durations.PATTERN)}) "
        f"&& duration(self) >= duration({quoted(low)}) && duration(self) <= duration({quoted(high)})"
    )
    return rule, f"must be a duration from {low} to {high} in whole numbers with units, such as 30s or 1h30m"


def _ip(_: Mapping[str, Any]) -> tuple[str, str]:
    return "isIP(self)", "must be an IP address such as 0.0.0.0, :: or 127.0.0.1"


def _reachable_ip(_: Mapping[str, Any]) -> tuple[str, str]:
    return (
        "isIP(self) && ip(self).isGlobalUnicast()",
        "must be an IP address at which other machines reach this one, such as 192.168.1.20",
    )


def _rfc3339(_: Mapping[str, Any]) -> tuple[str, str]:
    return (
        f"self.matches({quoted(_RFC3339)}) && !self.startsWith('0000') "
        "&& !format.datetime().validate(self).hasValue()",
        "must be an RFC 3339 time with a zone, such as 2030-01-31T18:00:00Z",
    )


def _time_zone(_: Mapping[str, Any]) -> tuple[str, str]:
    """The shape alone: which zones there are is known to the machine that uses them."""
    return f"self.matches({quoted(_ZONE)})", "must be an IANA time zone such as Europe/Berlin"


def _target(_: Mapping[str, Any]) -> tuple[str, str]:
    """Addresses are checked piecemeal: of what `url()` returns the API server knows no length."""
    scheme, port = "^https?://", f"(:{_PORT})?$"
    rule = (
        f"self.matches({quoted(scheme + _HOST + port)}) "
        f"&& (!self.matches({quoted(scheme + '[0-9.]+(:[0-9]+)?$')}) "
        f"|| self.matches({quoted(scheme + _NUMBER + '([.]' + _NUMBER + '){3}' + port)})) "
        "&& (!self.contains('[') || isIP(self.substring(self.indexOf('[') + 1, self.indexOf(']'))))"
    )
    return rule, (
        "must be http(s)://HOST[:PORT], such as http://127.0.0.1:11434, with a port from 1 to 65535: "
        "remove path, query and credentials (use credentialSecretRef)"
    )


def _program(_: Mapping[str, Any]) -> tuple[str, str]:
    return (
        rf"{_TRIMMED} && !self.matches('[/\\\\]')",
        "must be a program's name without path or surrounding blanks, such as steam",
    )


def _nonblank(_: Mapping[str, Any]) -> tuple[str, str]:
    return _TRIMMED, "must not be blank or padded"


_KINDS: Mapping[str, Callable[[Mapping[str, Any]], tuple[str, str]]] = {
    "pattern": _pattern,
    "duration": _duration,
    "ip": _ip,
    "reachable-ip": _reachable_ip,
    "rfc3339": _rfc3339,
    "time-zone": _time_zone,
    "target": _target,
    "program": _program,
    "nonblank": _nonblank,
}


def checked(schema: Mapping[str, Any], where: str) -> dict[str, str]:
    """The validation of a text with an `x-vacancy-check`.

    Raises:
        SchemaError: There is no such kind.
    """
    kind = schema["x-vacancy-check"]["kind"]
    if kind not in _KINDS:
        raise SchemaError(f"{where}: there is no rule for x-vacancy-check of kind {kind!r}")
    rule, message = _KINDS[kind](schema)
    return {"rule": rule, "message": message}
