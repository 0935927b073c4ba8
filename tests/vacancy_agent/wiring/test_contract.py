"""A manifest becomes what an agent runs by, or every reason why not."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from standins.agents import manifest
from vacancy_agent.store.state import Tokens
from vacancy_agent.wiring.config import RefusedError
from vacancy_agent.wiring.contract import alone

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens("the-borrow", "the-read", "the-admin", tmp_path, created=False)


def written(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode()


def refused(content: bytes, tokens: Tokens) -> list[str]:
    with pytest.raises(RefusedError) as error:
        alone(content, tokens)
    assert str(error.value) == "; ".join(error.value.errors)
    return error.value.errors


def test_a_manifest_becomes_settings_with_the_digests_of_the_tokens(tokens: Tokens):
    config = alone(written(manifest("http://127.0.0.1:9", port=8471)), tokens)
    assert config.host.upstreams["up"].port == 8471
    assert config.access.listen == "127.0.0.1"
    assert config.limits.max_connections == 256
    assert config.token_entries == tuple(
        (name, (name,), hashlib.sha256(f"the-{name}".encode()).hexdigest())
        for name in ("borrow", "read", "admin")
    )
    assert hashlib.sha256(b"the-borrow").hexdigest() not in config.document
    assert json.loads(config.document)["spec"]["upstreams"][0]["port"] == 8471
    assert "the-borrow" not in repr(config)


def test_a_path_is_as_good_as_its_content(tmp_path: Path, tokens: Tokens):
    document = manifest("http://127.0.0.1:9")
    (tmp_path / "host.json").write_bytes(written(document))
    assert alone(tmp_path / "host.json", tokens) == alone(written(document), tokens)


def test_every_error_of_a_manifest_is_a_line_with_its_path(tokens: Tokens):
    document = manifest("ftp://x", port=0, resource="none")
    document["spec"]["owner"]["idel"] = "3m"
    paths = {line.split(":")[0] for line in refused(written(document), tokens)}
    assert {"spec.upstreams[0].target", "spec.upstreams[0].port", "spec.owner.idel"} <= paths


def test_one_model_in_two_spellings_is_refused_with_its_path(tokens: Tokens):
    document = manifest("http://127.0.0.1:9")
    document["spec"]["upstreams"][0] |= {
        "dialect": "ollama",
        "models": {"items": [{"name": "small"}, {"name": "SMALL:latest"}]},
    }
    assert refused(written(document), tokens) == [
        "spec.upstreams[0].models.items[1].name: 'SMALL:latest' and 'small' are both small:latest to ollama: "
        "keep one"
    ]
    document["spec"]["upstreams"][0]["dialect"] = "llamacpp"
    (upstream,) = alone(written(document), tokens).host.upstreams.values()
    assert set(upstream.footprints) == {"small", "SMALL:latest"}


def test_two_equal_manifests_have_one_digest_and_another_has_another(tokens: Tokens):
    document = manifest("http://127.0.0.1:9")
    same = written(dict(reversed(document.items())))
    assert alone(written(document), tokens).digest == alone(same, tokens).digest
    document["spec"]["upstreams"][0]["slots"] = 4
    assert alone(written(document), tokens).digest != alone(same, tokens).digest
