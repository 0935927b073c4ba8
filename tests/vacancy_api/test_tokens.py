from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from vacancy_api.tokens import new_token

if TYPE_CHECKING:
    import pytest


def test_no_token_looks_like_an_option(monkeypatch: pytest.MonkeyPatch):
    made = iter(["-looks-like-one", "--and-this", "fine-_token"])
    monkeypatch.setattr(secrets, "token_urlsafe", lambda _size: next(made))
    assert new_token() == "fine-_token"
