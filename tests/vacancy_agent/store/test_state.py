from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from vacancy_agent.store.errors import StoreError
from vacancy_agent.store.state import StateDir, default_state_dir


@pytest.fixture
def state(tmp_path: Path):
    opened = StateDir(tmp_path / "state")
    yield opened
    opened.close()


def test_the_first_start_makes_three_different_tokens_and_later_ones_find_them(state: StateDir):
    first, second = state.tokens(), state.tokens()
    assert first.created
    assert not second.created
    assert len({first.borrow, first.read, first.admin}) == 3
    assert min(len(token) for token in (first.borrow, first.read, first.admin)) >= 43
    assert (second.borrow, second.read, second.admin) == (first.borrow, first.read, first.admin)
    assert json.loads(first.path.read_text()) == {
        "borrow": first.borrow,
        "read": first.read,
        "admin": first.admin,
    }


@pytest.mark.skipif(sys.platform == "win32", reason="modes of a file are those of POSIX")
def test_only_the_agents_user_reads_any_of_it(state: StateDir):
    tokens = state.tokens()
    assert state.path.stat().st_mode & 0o777 == 0o700
    assert tokens.path.stat().st_mode & 0o777 == 0o600
    tokens.path.chmod(0o644)
    state.tokens()
    assert tokens.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "content",
    [
        *(
            "",
            "[]",
            "{}",
            '{"borrow": "a", "read": "b"}',
            '{"borrow":"a","read":"","admin":1}',
            "[" * 100_000,
        ),
        *('{"borrow":"\\ud800","read":"b","admin":"c"}', '{"borrow":"a\\nb","read":"b","admin":"c"}'),
    ],
)
def test_a_damaged_token_file_is_said_not_replaced(state: StateDir, content: str):
    (state.path / "tokens.json").write_text(content)
    with pytest.raises(StoreError, match=r"tokens\.json .*delete it to have new ones made"):
        state.tokens()


def test_a_secret_is_a_file_without_its_line_end(state: StateDir):
    folder = state.path / "secrets" / "upstream"
    folder.mkdir(parents=True)
    for content, expected in (("s\n", "s"), ("s\r\n", "s"), ("s", "s"), ("a\nb\n\n", "a\nb\n")):
        (folder / "token").write_bytes(content.encode())
        assert state.secret("upstream", "token") == expected


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes in folders")
def test_a_secret_that_is_a_pipe_is_not_waited_for(state: StateDir):
    (state.path / "secrets" / "a").mkdir(parents=True)
    os.mkfifo(state.path / "secrets" / "a" / "b")
    (state.path / "secrets" / "a" / "c").mkdir()
    for key in ("b", "c"):
        with pytest.raises(StoreError, match="it is no file"):
            state.secret("a", key)


def test_a_missing_secret_says_where_to_write_it(state: StateDir):
    with pytest.raises(StoreError, match=r"no secret 'a' with the key 'b': write it to .*secrets.a.b"):
        state.secret("a", "b")


@pytest.mark.parametrize(
    ("name", "key"), [("..", "tokens.json"), ("a", "../../tokens.json"), ("", "x"), ("a", "b\0")]
)
def test_a_secret_never_leads_out_of_its_folder(state: StateDir, name: str, key: str):
    state.tokens()
    with pytest.raises(StoreError, match="not a plain name"):
        state.secret(name, key)


def test_a_secret_that_is_no_text_is_refused(state: StateDir):
    (state.path / "secrets" / "a").mkdir(parents=True)
    (state.path / "secrets" / "a" / "b").write_bytes(b"\xff\xfe")
    with pytest.raises(StoreError, match="not UTF-8"):
        state.secret("a", "b")


def test_the_last_good_configuration_is_kept(state: StateDir):
    assert state.load_config() is None
    state.save_config(b"one")
    state.save_config(b"two")
    assert state.load_config() == b"two"


def test_a_configuration_that_cannot_be_read_is_an_error_not_an_absence(state: StateDir):
    (state.path / "last-good.json").mkdir()
    with pytest.raises(StoreError, match=r"read .*last-good\.json"):
        state.load_config()


def test_the_default_place_is_the_users_own(monkeypatch: pytest.MonkeyPatch):
    if sys.platform != "win32":
        monkeypatch.setattr("os.geteuid", lambda: 1000)
        monkeypatch.setenv("XDG_STATE_HOME", "/home/ada/.state")
        assert default_state_dir() == Path("/home/ada/.state/vacancy")
