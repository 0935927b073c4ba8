"""An agent's aiohttp holds no authorities, and its environment is as before."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from vacancy_agent.platform.authorities import NAMES, without_authorities


@pytest.mark.parametrize("value", [None, "/etc/authorities.pem"])
def test_the_environment_is_as_before(value: str | None, monkeypatch: pytest.MonkeyPatch):
    for name in NAMES:
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    seen = []

    def fails() -> None:
        with without_authorities():
            seen.extend(os.environ[name] for name in NAMES)
            raise LookupError

    with pytest.raises(LookupError):
        fails()
    assert seen == [os.devnull] * 2
    assert [os.environ.get(name) for name in NAMES] == [value] * 2


@pytest.mark.component
def test_aiohttp_made_like_this_trusts_nobody():
    code = (
        "from vacancy_agent.platform.authorities import without_authorities\n"
        "with without_authorities():\n"
        "    import aiohttp.connector as made\n"
        "print(made._SSL_CONTEXT_VERIFIED.cert_store_stats()['x509'], made._SSL_CONTEXT_VERIFIED.verify_mode)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "0 2\n"  # 2: ssl.CERT_REQUIRED, whoever forgets a context fails
