"""Secrets are looked at before a configuration is applied, and what is wrong names the file to write."""

from __future__ import annotations

import json
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from standins.agents import manifest
from standins.certificates import write_certificate
from vacancy_agent.store.state import StateDir, Tokens
from vacancy_agent.wiring import secret_files
from vacancy_agent.wiring.contract import alone
from vacancy_agent.wiring.secret_files import CertificateError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vacancy_agent.wiring.config import Configuration


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDir]:
    found = StateDir(tmp_path / "state")
    yield found
    found.close()


def a_configuration(tmp_path: Path, **changes: Any) -> Configuration:
    tokens = Tokens("b" * 43, "r" * 43, "a" * 43, tmp_path, created=False)
    return alone(json.dumps(manifest("http://127.0.0.1:9", **changes)).encode(), tokens)


def with_tls(tmp_path: Path) -> Configuration:
    return a_configuration(tmp_path, spec_access={"apiPort": 8470, "tls": {"secretRef": {"name": "cert"}}})


def with_key(tmp_path: Path) -> Configuration:
    return a_configuration(tmp_path, credentialSecretRef={"name": "up", "key": "token"})


def put(state: StateDir, name: str, key: str, content: str | bytes) -> Path:
    path = state.path / "secrets" / name / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_configuration_without_secrets_has_no_problem(tmp_path: Path, state: StateDir):
    assert secret_files.problems(a_configuration(tmp_path), state) == []


def test_a_missing_credential_names_its_path_in_the_manifest_and_the_file_to_write(
    tmp_path: Path, state: StateDir
):
    (problem,) = secret_files.problems(with_key(tmp_path), state)
    file = state.path / "secrets" / "up" / "token"
    assert problem == (
        "spec.upstreams[0].credentialSecretRef: no secret 'up' with the key 'token': write it to " + str(file)
    )
    put(state, "up", "token", "sesame\n")
    assert secret_files.problems(with_key(tmp_path), state) == []
    upstream = with_key(tmp_path).host.upstreams["up"]
    assert secret_files.credential(state, upstream) == "sesame"


@pytest.mark.parametrize(
    "content", ["", "\n", "two\nlines", "a\r\nX-Injected: 1", "tab\there", "schlüssel", b"\xff\xfe", "nul\0"]
)
def test_a_credential_that_no_header_can_carry_is_a_problem(
    tmp_path: Path, state: StateDir, content: str | bytes
):
    file = put(state, "up", "token", content)
    (problem,) = secret_files.problems(with_key(tmp_path), state)
    assert str(file) in problem
    assert "sesame" not in problem


def test_both_files_of_a_certificate_are_wanted(tmp_path: Path, state: StateDir):
    (problem,) = secret_files.problems(with_tls(tmp_path), state)
    assert problem.startswith(
        "spec.access.tls.secretRef: no secret 'cert' with the key 'tls.crt': write it to"
    )
    folder = state.path / "secrets" / "cert"
    write_certificate(folder)
    (folder / "tls.key").unlink()
    (problem,) = secret_files.problems(with_tls(tmp_path), state)
    assert problem.endswith(f"write it to {folder / 'tls.key'}")


@pytest.mark.parametrize("fault", ["another key", "no key", "no certificate", "a passphrase"])
def test_files_that_do_not_go_together_are_named(tmp_path: Path, state: StateDir, fault: str):
    folder = state.path / "secrets" / "cert"
    write_certificate(folder, passphrase=b"secret" if fault == "a passphrase" else None)
    if fault == "another key":
        write_certificate(tmp_path / "other")
        (folder / "tls.key").write_bytes((tmp_path / "other" / "tls.key").read_bytes())
    if fault == "no key":
        (folder / "tls.key").write_text("not a key\n")
    if fault == "no certificate":
        (folder / "tls.crt").write_text("not a certificate\n")
    (problem,) = secret_files.problems(with_tls(tmp_path), state)
    assert problem.startswith("spec.access.tls.secretRef: ")
    assert str(folder / "tls.crt") in problem
    assert str(folder / "tls.key") in problem
    assert "without a passphrase" in problem


def test_a_passphrase_is_never_asked_for(tmp_path: Path, state: StateDir):
    write_certificate(state.path / "secrets" / "cert", passphrase=b"secret")
    found = secret_files.certificate(state, "cert")
    assert found is not None
    with pytest.raises(CertificateError, match="the key is encrypted"):
        found.context()


def test_every_problem_is_named_at_once(tmp_path: Path, state: StateDir):
    config = a_configuration(
        tmp_path,
        credentialSecretRef={"name": "up", "key": "token"},
        spec_access={"apiPort": 8470, "tls": {"secretRef": {"name": "cert"}}},
    )
    assert [problem.split(":")[0] for problem in secret_files.problems(config, state)] == [
        "spec.upstreams[0].credentialSecretRef",
        "spec.access.tls.secretRef",
    ]


def test_a_renewed_certificate_is_another_one(state: StateDir):
    folder = state.path / "secrets" / "cert"
    write_certificate(folder)
    first = secret_files.certificate(state, "cert")
    assert first is not None
    assert secret_files.certificate(state, "cert") == first
    assert first.context().minimum_version >= ssl.TLSVersion.TLSv1_2
    write_certificate(folder)
    assert secret_files.certificate(state, "cert") != first


def test_where_none_is_named_none_is_read(tmp_path: Path, state: StateDir):
    assert secret_files.certificate(state, None) is None
    assert secret_files.credential(state, a_configuration(tmp_path).host.upstreams["up"]) is None
