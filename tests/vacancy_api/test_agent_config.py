from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standins.anything import ANYTHING
from standins.manifests import REMOVE, change, host
from vacancy_api.agent_config import (
    AgentConfigInvalid,
    TokenDigest,
    build_agent_config,
    canonical_json,
    digest_of,
    parse_agent_config,
)

TOKENS = [
    TokenDigest.of("gaming-box/borrow", ["borrow"], "secret"),
    TokenDigest.of("x/admin", ["read", "admin"], "s2"),
]


def built(**changes: Any) -> dict[str, Any]:
    """A valid document with changes and a digest that fits them."""
    document = build_agent_config(host(), TOKENS).document()
    for place, value in changes.items():
        change(document, place.replace("__", "."), value)
    return {**document, "digest": digest_of(document)} if "digest" not in changes else document


def errors_of(document: Any) -> dict[str, str]:
    with pytest.raises(AgentConfigInvalid) as caught:
        parse_agent_config(document if isinstance(document, (str, bytes)) else json.dumps(document))
    return {error.path: error.message for error in caught.value.errors}


def test_what_is_built_is_read_back() -> None:
    config = build_agent_config(host(), TOKENS)
    assert parse_agent_config(config.to_json()) == config
    assert parse_agent_config(json.dumps(config.document(), indent=4).encode()) == config


def test_the_digest_is_over_the_canonical_document_without_itself() -> None:
    document = built()
    rest = {key: value for key, value in document.items() if key != "digest"}
    assert document["digest"] == hashlib.sha256(canonical_json(rest).encode()).hexdigest()


def test_every_default_is_filled_in() -> None:
    config = build_agent_config(host(spec__access={}, spec__limits={}), TOKENS)
    assert config.spec.access.listen == "0.0.0.0"
    assert config.spec.limits.max_buffered_body_mib == 256
    assert [item.yield_on_veto for item in config.spec.upstreams] == [False, True]
    assert config.document()["spec"]["owner"]["idleAfter"] == "10m"


def test_only_digests_of_tokens_are_in_it() -> None:
    text = build_agent_config(host(), TOKENS).to_json()
    assert "secret" not in text.replace("credentialSecretRef", "").replace("secretRef", "")
    assert hashlib.sha256(b"secret").hexdigest() in text


def test_the_network_without_a_token_is_refused() -> None:
    with pytest.raises(AgentConfigInvalid, match="while there is no token"):
        build_agent_config(host(), [])
    with pytest.raises(AgentConfigInvalid, match="while there is no token"):
        build_agent_config(host(spec__access={}), [])


@pytest.mark.parametrize(
    ("access", "default"),
    [
        ({"listen": "127.0.0.1"}, "0.0.0.0"),
        ({"listen": "::1"}, "0.0.0.0"),
        ({}, "127.0.0.1"),
        ({"listen": "0.0.0.0", "allowUnauthenticatedRemote": True}, "127.0.0.1"),
    ],
)
def test_without_tokens_only_this_machine_or_by_word_of_the_owner(
    access: dict[str, Any], default: str
) -> None:
    assert build_agent_config(host(spec__access=access), [], default_listen=default).tokens == []


def test_an_edited_document_is_refused() -> None:
    document = built()
    document["spec"]["lending"] = False
    assert "does not match" in errors_of(document)["digest"]


@pytest.mark.parametrize(
    ("changes", "path", "piece"),
    [
        ({"digest": REMOVE}, "digest", "is required"),
        ({"digest": 3}, "digest", "must be text"),
        ({"kind": "LendingHost"}, "kind", "AgentConfig"),
        ({"novel": 1}, "novel", "not a known field"),
        ({"spec__access__listen": REMOVE}, "spec.access.listen", "is required"),
        ({"spec__upstreams[0]__port": 8470}, "spec.upstreams[0].port", "choose another"),
        ({"spec__lendin": 1}, "spec.lendin", "did you mean lending?"),
        ({"tokens[0]__scopes": ["write"]}, "tokens[0].scopes[0]", "must be one of borrow"),
        ({"tokens[0]__scopes": []}, "tokens[0].scopes", "at least 1"),
        ({"tokens[0]__scopes": ["read", "read"]}, "tokens[0].scopes[1]", "listed twice"),
        ({"tokens[0]__sha256": "abc"}, "tokens[0].sha256", "64 lower-case hex"),
        ({"tokens[1]__name": "gaming-box/borrow"}, "tokens[1].name", "another token"),
        ({"tokens[1]__sha256": TOKENS[0].sha256}, "tokens[1].sha256", "another token"),
        ({"tokens": []}, "spec.access.listen", "while there is no token"),
        ({"host__name": "A"}, "host.name", "DNS subdomain"),
    ],
)
def test_wrong_documents(changes: dict[str, Any], path: str, piece: str) -> None:
    errors = errors_of(built(**changes))
    assert list(errors) == [path]
    assert piece in errors[path]


def test_every_error_is_named_at_once() -> None:
    wrong = {"kind": "X", "tokens[0]__sha256": "abc", "tokens[1]__name": "gaming-box/borrow"}
    errors = errors_of(built(**wrong, **{"spec__upstreams[0]__port": 8470}))
    assert set(errors) == {"kind", "tokens[0].sha256", "tokens[1].name", "spec.upstreams[0].port"}


@pytest.mark.parametrize(
    ("source", "piece"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[]", "must be an object"),
        (b"\xff\xfe\xff", "not valid JSON"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": 1e999}', "not valid JSON"),
        ('{"a": "\\ud800"}', "not valid JSON"),
        ('{"a": 1, "a": 2}', "'a' twice"),
        ('{"a": ' + "9" * 5000 + "}", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        (" " * 1_000_000, "larger than"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_no_document(source: str | bytes, piece: str) -> None:
    assert piece in errors_of(source)[""]


def test_a_tokens_name_may_be_a_path() -> None:
    assert TokenDigest.of("svc/home-llm", ["borrow"], "t").name == "svc/home-llm"


@given(ANYTHING)
def test_no_document_raises_anything_else(data: object) -> None:
    try:
        source = json.dumps(data, allow_nan=False)
    except ValueError:
        return
    errors_of(source)


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(content: bytes) -> None:
    errors_of(content)
