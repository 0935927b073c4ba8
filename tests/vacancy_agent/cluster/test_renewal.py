"""A new token is taken from the join Secret, and nothing else from anywhere else."""

from __future__ import annotations

import base64
import stat
from typing import TYPE_CHECKING, Any

import pytest

from standins.kube_api import TOKEN
from standins.membership import identity
from vacancy_agent.cluster.fault import ApiError
from vacancy_agent.cluster.renewal import Renewal

if TYPE_CHECKING:
    from pathlib import Path


class Api:
    def __init__(self, **data: str) -> None:
        self.data: Any = {k.replace("_", "."): base64.b64encode(v.encode()).decode() for k, v in data.items()}
        self.asked: list[str] = []

    async def get(self, path: str) -> Any:
        self.asked.append(path)
        if isinstance(self.data, ApiError):
            raise self.data
        return {"data": self.data}


def renewal(folder: Path, api: Any, told: list[str]) -> Renewal:
    return Renewal(api, identity(folder, "https://192.0.2.1"), lambda event, **_: told.append(event))


async def test_a_new_token_is_written_for_the_agent_alone(tmp_path: Path):
    api, told = Api(token="renewed"), []
    await renewal(tmp_path, api, told).look()
    assert identity_token(tmp_path) == "renewed"
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert (api.asked, told) == (["/api/v1/namespaces/lending/secrets/lh-box-join"], ["renewed"])


def identity_token(folder: Path) -> str:
    return (folder / "token").read_text().strip()


async def test_the_same_token_is_not_written_again(tmp_path: Path):
    told: list[str] = []
    await renewal(tmp_path, Api(token=TOKEN), told).look()
    assert told == []


async def test_another_authority_is_trusted_from_now_on(tmp_path: Path):
    await renewal(tmp_path, Api(token=TOKEN, ca_crt="new"), []).look()
    assert (tmp_path / "ca.crt").read_text() == "new"


@pytest.mark.parametrize(
    "data", [ApiError(403, "no"), ApiError(None, "gone"), {}, {"token": 5}, {"token": "%"}]
)
async def test_what_is_no_token_changes_nothing(tmp_path: Path, data: Any):
    api = Api()
    api.data = data
    await renewal(tmp_path, api, []).look()
    assert identity_token(tmp_path) == TOKEN


async def test_a_folder_that_cannot_be_written_is_told_once(tmp_path: Path):
    told: list[str] = []
    looks = renewal(tmp_path, Api(token="renewed", ca_crt="new"), told)
    (tmp_path / "token").unlink()
    (tmp_path / "token").mkdir()
    await looks.look()
    await looks.look()
    assert told == ["token not renewed"]
