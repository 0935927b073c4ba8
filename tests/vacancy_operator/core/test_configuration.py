from __future__ import annotations

from standins.operator_world import EXTERNAL, SPEC, lending_host
from vacancy_api.agent_config import parse_agent_config
from vacancy_operator.core.configuration import Configurations, Configured, Unacceptable, configure

TOKENS = {"borrow": "B" * 43, "read": "R" * 43, "admin": "A" * 43}


def test_a_configuration_is_what_the_agent_reads() -> None:
    found = configure(lending_host(generation=7), TOKENS)
    assert isinstance(found, Configured)
    read = parse_agent_config(found.text)
    assert (read.host.generation, read.host.uid, read.spec.access.listen) == (7, "uid-1", "0.0.0.0")
    assert [(one.name, one.scopes) for one in read.tokens] == [
        ("box/borrow", ["borrow"]),
        ("box/read", ["read"]),
        ("box/admin", ["admin"]),
    ]
    assert not any(token in found.text for token in TOKENS.values())
    assert (found.external, found.secrets, found.upstreams) == (False, (), frozenset({"llama"}))


def test_the_secrets_that_a_spec_refers_to() -> None:
    upstream = {**SPEC["upstreams"][0], "credentialSecretRef": {"name": "key"}}
    access = {"tls": {"secretRef": {"name": "cert"}}}
    found = configure(lending_host(upstreams=[upstream], access=access, **EXTERNAL), TOKENS)
    assert isinstance(found, Configured)
    assert (found.external, found.secrets) == (True, ("cert", "key"))


def test_what_is_wrong_is_told_with_its_path() -> None:
    found = configure(lending_host(schedule={"timeZone": "Europe/Atlantis", "windows": []}), TOKENS)
    assert isinstance(found, Unacceptable)
    assert "spec.schedule.timeZone" in found.message


def test_two_tokens_with_one_value_are_refused() -> None:
    found = configure(lending_host(), {**TOKENS, "read": TOKENS["admin"]})
    assert isinstance(found, Unacceptable)
    assert "every token has its own" in found.message


def test_a_message_stays_short() -> None:
    many = [{**SPEC["upstreams"][0], "port": "x", "name": f"n{index}"} for index in range(60)]
    found = configure(lending_host(upstreams=many), TOKENS)
    assert isinstance(found, Unacceptable)
    assert len(found.message) < 1000
    assert "more" in found.message


def test_the_same_host_is_built_once() -> None:
    known = Configurations()
    first = known.of(lending_host(), TOKENS)
    assert known.of(lending_host(), TOKENS) is first
    assert known.of(lending_host(generation=2), TOKENS) is not first
    assert known.of(lending_host(uid="uid-2", generation=2), TOKENS) is not first
    known.forget("box")
    assert known.of(lending_host(), TOKENS) == first
