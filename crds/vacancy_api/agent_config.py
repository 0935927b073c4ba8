"""`agent.json`: the complete configuration of one agent, made by the operator (alone: by the agent).

Invariant: a document whose digest does not match, or that would serve other machines without a token, never
becomes an `AgentConfig`. A manifest cannot be judged on that last point, since the tokens are added to it; so
the rule stands here, where both sides of it are known. The digest covers the document as it was written and
not the model made of it, so it says whether the bytes are whole even where defaults differ.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from vacancy_api.cross_checks import cross_check
from vacancy_api.fields import Contract, DnsLabel, complaint, matching
from vacancy_api.lending_host import API_VERSION, HostName, LendingHost, LendingHostSpec
from vacancy_api.loose import Loc, Problem, entries, mapping, repeated, text, texts
from vacancy_api.problems import ContractInvalid, FieldError, path_of, shown
from vacancy_api.wording import word

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_BYTES = 900 * 1024
"""A ConfigMap holds 1 MiB."""

ScopeName = Literal["borrow", "read", "admin", "relay"]
Sha256 = Annotated[str, matching("^[0-9a-f]{64}$", "a SHA-256 digest as 64 lower-case hex digits", 64)]
TokenName = Annotated[
    str,
    matching(
        "^[A-Za-z0-9][-._/A-Za-z0-9]*$",
        "a token's name: letters, digits and '-', '_', '.', '/', starting with a letter or digit",
        253,
    ),
]


class AgentConfigInvalid(ContractInvalid):
    """The configuration is refused whole; `errors` names every reason with its path."""


class HostIdentity(Contract):
    """The LendingHost that a configuration was made from."""

    namespace: DnsLabel = Field(description="Namespace of the LendingHost.")
    name: HostName = Field(description="Name of the LendingHost.")
    uid: str = Field(default="", max_length=64, description="Identity of the object; empty alone.")
    generation: int = Field(default=0, ge=0, description="Generation of the spec; 0 alone.")


class TokenDigest(Contract):
    """A token that the agent accepts, known by its digest only."""

    name: TokenName = Field(description="Name under which the owner sees who borrowed.")
    scopes: list[ScopeName] = Field(
        min_length=1, max_length=4, description="What the token is good for: borrow, read, admin, relay."
    )
    sha256: Sha256 = Field(description="SHA-256 of the token, hex.")

    @classmethod
    def of(cls, name: str, scopes: Sequence[ScopeName], token: str) -> Self:
        """The entry for a token."""
        digest = hashlib.sha256(token.encode()).hexdigest()
        return cls.model_validate({"name": name, "scopes": list(scopes), "sha256": digest})


class AgentConfig(Contract):
    """The document itself. Make one with `build_agent_config` or `parse_agent_config`."""

    api_version: Literal["vacancy.dev/v1alpha1"] = Field(description="Always vacancy.dev/v1alpha1.")
    kind: Literal["AgentConfig"] = Field(description="Always AgentConfig.")
    host: HostIdentity = Field(description="The LendingHost that the configuration was made from.")
    spec: LendingHostSpec = Field(description="Its spec with defaults filled in.")
    tokens: list[TokenDigest] = Field(
        default_factory=list, max_length=1024, description="Tokens that the agent accepts; at most 1024."
    )
    digest: Sha256 = Field(description="SHA-256 of the canonical JSON of the document without this key.")

    @model_validator(mode="after")
    def _hold_together(self) -> Self:
        problems = list(_check(self.model_dump(by_alias=True)))
        if problems:
            details = [
                InitErrorDetails(type=complaint(problem.message), loc=problem.loc, input=None)
                for problem in problems
            ]
            raise ValidationError.from_exception_data("AgentConfig", details)
        return self

    def document(self) -> dict[str, Any]:
        """The document as plain data."""
        return self.model_dump(by_alias=True, exclude_none=True)

    def to_json(self) -> str:
        """The document as canonical JSON, which is what `agent.json` holds."""
        return canonical_json(self.document())


def canonical_json(data: Mapping[str, Any]) -> str:
    """One spelling of a document: sorted keys, no blanks, ASCII."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(data: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical JSON of a document without its `digest`, as hex."""
    rest = {key: value for key, value in data.items() if key != "digest"}
    return hashlib.sha256(canonical_json(rest).encode()).hexdigest()


def build_agent_config(
    host: LendingHost, tokens: Sequence[TokenDigest], *, default_listen: str = "0.0.0.0"
) -> AgentConfig:
    """The configuration of a host's agent.

    Args:
        host: The LendingHost.
        tokens: Every token that the agent is to accept.
        default_listen: Address to bind where the manifest names none: all addresses in a cluster, 127.0.0.1
            alone.

    Raises:
        AgentConfigInvalid: The parts do not go together, such as a network listener without any token.
    """
    spec = host.spec.model_dump(by_alias=True, exclude_none=True)
    spec["access"].setdefault("listen", default_listen)
    spec["limits"]["maxBufferedBodyMiB"] = host.spec.limits.buffered_body_mib
    for item, upstream in zip(spec["upstreams"], host.spec.upstreams, strict=True):
        item["yieldOnVeto"] = upstream.yields
    document: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": "AgentConfig",
        "host": host.metadata.model_dump(include={"namespace", "name", "uid", "generation"}),
        "spec": spec,
        "tokens": [token.model_dump(by_alias=True) for token in tokens],
    }
    return _validated({**document, "digest": digest_of(document)})


def parse_agent_config(source: str | bytes) -> AgentConfig:
    """Reads `agent.json`.

    Raises:
        AgentConfigInvalid: It is not valid JSON, its digest does not match, or a field is wrong.
    """
    data = _loaded(source)
    given = data.get("digest")
    if isinstance(given, str) and given != digest_of(data):
        message = "does not match the document: it was cut short or edited; let the operator write it again"
        raise AgentConfigInvalid([FieldError("digest", message)])
    return _validated(data)


def _loaded(source: str | bytes) -> dict[str, Any]:
    if len(source) > MAX_BYTES:
        raise AgentConfigInvalid([FieldError("", f"is larger than {MAX_BYTES // 1024} KiB")])
    twice: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice.extend(key for _, key in repeated(enumerate(key for key, _ in pairs)))
        return dict(pairs)

    def no_constant(name: str) -> None:
        raise ValueError(f"{name} is not a JSON number")

    try:
        data = json.loads(source, object_pairs_hook=unique, parse_constant=no_constant)
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()  # no half surrogates, no infinity
    except (ValueError, RecursionError) as error:
        raise AgentConfigInvalid([FieldError("", f"is not valid JSON: {error}")]) from error
    errors = [FieldError("", f"holds the key {shown(key)} twice in one object") for key in twice]
    if not isinstance(data, dict):
        errors.append(FieldError("", f"must be an object; got {shown(data)}"))
    if errors:
        raise AgentConfigInvalid(errors)
    return dict(data)


def _validated(data: dict[str, Any]) -> AgentConfig:
    try:
        return AgentConfig.model_validate(data)
    except ValidationError as error:
        errors = [
            FieldError(path_of(detail["loc"]), word(detail, AgentConfig, None))
            for detail in error.errors(include_url=False)
        ]
        crossed = [Problem(("spec", *found.loc), found.message) for found in cross_check(data.get("spec"))]
        errors += [FieldError(path_of(found.loc), found.message) for found in (*crossed, *_check(data))]
        raise AgentConfigInvalid(errors) from error


def _check(data: Mapping[str, Any]) -> Iterator[Problem]:
    """What must hold between the parts of a configuration, its spec aside."""
    found = entries(data, "tokens")
    for key, what in (("name", "name"), ("sha256", "value")):
        for index, _ in repeated((index, text(item, key)) for index, item in found):
            yield Problem(
                ("tokens", index, key), f"is the {what} of another token too: every token has its own"
            )
    for index, item in found:
        for place, scope in repeated(texts(item, "scopes")):
            yield Problem(("tokens", index, "scopes", place), f"{scope!r} is listed twice: remove one")
    access = mapping(mapping(data, "spec"), "access")
    loc: Loc = ("spec", "access", "listen")
    listen = text(access, "listen")
    if listen is None:
        yield Problem(loc, "is required in a configuration: the address that all listeners bind")
    elif not found and access.get("allowUnauthenticatedRemote") is not True and not _is_loopback(listen):
        yield Problem(
            loc,
            f"{listen} lets other machines in while there is no token: add tokens, listen on 127.0.0.1, "
            "or write allowUnauthenticatedRemote: true",
        )


def _is_loopback(listen: str) -> bool:
    try:
        return ipaddress.ip_address(listen).is_loopback
    except ValueError:
        return True  # not an address: that is the error to report
