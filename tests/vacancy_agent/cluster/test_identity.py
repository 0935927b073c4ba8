"""The join folder: what it must hold, and that it is read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.membership import NAME, NAMESPACE, join_folder
from vacancy_agent.cluster.identity import JoinError, read_identity

if TYPE_CHECKING:
    from pathlib import Path

SERVER = "https://192.0.2.1:6443"


def test_a_whole_folder(tmp_path: Path):
    who = read_identity(join_folder(tmp_path, SERVER + "/", ca_crt="a certificate"))
    assert (who.server, who.namespace, who.name) == (SERVER, NAMESPACE, NAME)
    assert who.prefix == "lh-box"
    assert who.authority() == "a certificate"


def test_without_a_certificate_the_system_decides_whom_to_trust(tmp_path: Path):
    assert read_identity(join_folder(tmp_path, SERVER)).authority() is None


def test_everything_that_is_missing_is_named_at_once(tmp_path: Path):
    with pytest.raises(JoinError) as caught:
        read_identity(tmp_path)
    named = " ".join(caught.value.errors)
    assert len(caught.value.errors) == 4
    assert all(str(tmp_path / key) in named for key in ("server", "namespace", "name", "token"))


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("http://192.0.2.1:6443", "https"),
        ("192.0.2.1:6443", "URL"),
        ("https://", "URL"),
        ("https://[::1", "URL"),
        ("https://192.0.2.1:port", "URL"),
        ("https://192.0.2.1/?a=b", "URL"),
    ],
)
def test_a_server_that_is_none(tmp_path: Path, server: str, why: str):
    with pytest.raises(JoinError, match=why):
        read_identity(join_folder(tmp_path, server))


@pytest.mark.parametrize("server", ["http://127.0.0.1:8001", "http://localhost:8001", "http://[::1]:8001"])
def test_this_machine_may_be_reached_in_the_clear(tmp_path: Path, server: str):
    assert read_identity(join_folder(tmp_path, server)).server == server


@pytest.mark.parametrize(
    ("key", "wrong"), [("namespace", "a.b"), ("name", "a/b"), ("name", "../b"), ("token", "a\nb")]
)
def test_names_and_tokens_that_cannot_be(tmp_path: Path, key: str, wrong: str):
    with pytest.raises(JoinError, match=key):
        read_identity(join_folder(tmp_path, SERVER, **{key: wrong}))


def test_a_renewed_token_is_the_one_that_counts(tmp_path: Path):
    who = read_identity(join_folder(tmp_path, SERVER))
    (tmp_path / "token").write_text("renewed")
    assert who.token() == "renewed"
