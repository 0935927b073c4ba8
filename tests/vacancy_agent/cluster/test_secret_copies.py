"""Secrets become files: whole or not at all, for the agent alone."""

from __future__ import annotations

import base64
import stat
from typing import TYPE_CHECKING, Any

import pytest

from standins.agents import manifest
from standins.membership import agent_json, identity, spec
from vacancy_agent.cluster.fault import ApiError
from vacancy_agent.cluster.secret_copies import SecretCopies, wanted
from vacancy_api.agent_config import parse_agent_config

if TYPE_CHECKING:
    from pathlib import Path

    from vacancy_api.agent_config import AgentConfig


class Api:
    """Answers with these Secrets; an `ApiError` among them is raised."""

    def __init__(self, **secrets: Any) -> None:
        self.secrets = secrets

    async def get(self, path: str) -> Any:
        found = self.secrets.get(path.rsplit("/", 1)[1], ApiError(404, "not found"))
        if isinstance(found, ApiError):
            raise found
        return {"data": {key: base64.b64encode(value).decode() for key, value in found.items()}}


def document() -> AgentConfig:
    made = spec(manifest("http://127.0.0.1:9", credentialSecretRef={"name": "key", "key": "token"}))
    made["access"]["tls"] = {"secretRef": {"name": "tls"}}
    return parse_agent_config(agent_json(made))


def copies(tmp_path: Path, api: Any) -> SecretCopies:
    return SecretCopies(api, identity(tmp_path / "join", "https://192.0.2.1"), tmp_path / "secrets")


WHOLE = {"key": {"token": b"sesame"}, "tls": {"tls.crt": b"c", "tls.key": b"k", "ca.crt": b"not ours"}}


def test_only_what_a_configuration_names_is_wanted():
    assert {(one.secret, one.key) for one in wanted(document())} == {
        ("key", "token"),
        ("tls", "tls.crt"),
        ("tls", "tls.key"),
    }


async def test_files_for_the_agent_alone(tmp_path: Path):
    kept = copies(tmp_path, Api(**WHOLE))
    assert await kept.keep(await kept.fetch(document()))
    files = {path.relative_to(tmp_path / "secrets").as_posix(): path for path in tmp_path.glob("secrets/*/*")}
    assert set(files) == {"key/token", "tls/tls.crt", "tls/tls.key"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.values()} == {0o600}
    assert files["key/token"].read_bytes() == b"sesame"
    assert not await kept.keep(await kept.fetch(document())), "nothing is new"


async def test_a_renewed_value_is_news(tmp_path: Path):
    api = Api(**WHOLE)
    kept = copies(tmp_path, api)
    await kept.keep(await kept.fetch(document()))
    api.secrets["key"] = {"token": b"renewed"}
    assert await kept.keep(await kept.fetch(document()))


@pytest.mark.parametrize(
    ("secrets", "named"),
    [
        (
            {**WHOLE, "key": ApiError(404, "not found")},
            "spec.upstreams[0].credentialSecretRef: Secret lending/key: 404",
        ),
        (
            {**WHOLE, "key": ApiError(403, "no")},
            "spec.upstreams[0].credentialSecretRef: Secret lending/key: 403",
        ),
        ({**WHOLE, "key": {"other": b""}}, "has no key token"),
        (
            {**WHOLE, "tls": {"tls.crt": b"c"}},
            "spec.access.tls.secretRef: Secret lending/tls: has no key tls.key",
        ),
    ],
)
async def test_what_is_missing_is_named_with_the_field_that_wants_it(
    tmp_path: Path, secrets: dict[str, Any], named: str
):
    (error,) = (await copies(tmp_path, Api(**secrets)).fetch(document())).errors
    assert named in error


async def test_an_outage_is_not_an_error_of_the_configuration(tmp_path: Path):
    with pytest.raises(ApiError):
        await copies(tmp_path, Api(key=ApiError(None, "gone"))).fetch(document())


async def test_what_is_dropped_is_gone(tmp_path: Path):
    kept = copies(tmp_path, Api(**WHOLE))
    await kept.keep(await kept.fetch(document()))
    await kept.drop({"key", "never there"})
    assert not (tmp_path / "secrets" / "key").exists()


def test_what_is_fetched_is_not_in_a_representation():
    from vacancy_agent.cluster.secret_copies import Fetched

    assert "sesame" not in repr(Fetched({("key", "token"): b"sesame"}))
