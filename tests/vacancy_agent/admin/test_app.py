"""The API over real sockets: who gets in, what a wrong request is told, and what the switches do."""

from __future__ import annotations

import io
import json
import tarfile
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from aiohttp.test_utils import RawTestServer, TestClient
from prometheus_client.parser import text_string_to_metric_families

from standins.hosts import host, resource, upstream
from standins.running import StillAgent
from vacancy_agent.admin.app import make_app
from vacancy_agent.admin.router import MAX_BODY
from vacancy_agent.core.facts import WallTime
from vacancy_agent.core.job import Job
from vacancy_agent.core.rfc3339 import rfc3339
from vacancy_agent.core.settings import AccessSettings, ResourceType
from vacancy_agent.store.errors import StoreError
from vacancy_edge import TokenTable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.component

TOKENS = {scope: f"the-{scope}-token" for scope in ("borrow", "read", "admin", "relay")}
READS = [("GET", "/status"), ("GET", "/metrics")]
CHANGES = [
    ("POST", "/admin/pause"),
    ("POST", "/admin/resume"),
    ("POST", "/admin/lending"),
    ("POST", "/admin/resources/gpu"),
    ("POST", "/admin/debug"),
    ("GET", "/admin/diagnostics"),
    ("GET", "/admin/holds"),
    ("DELETE", "/admin/holds/1"),
]


@asynccontextmanager
async def serving(agent: StillAgent) -> AsyncIterator[TestClient]:
    async with TestClient(RawTestServer(make_app(agent))) as client:
        yield client


def still() -> StillAgent:
    resources = (resource("gpu"), resource("ram", ResourceType.MEMORY), resource("cpu", ResourceType.CPU))
    agent = StillAgent(host((upstream("llm", ("gpu", "ram", "cpu")),), resources))
    entries = [(name, [name], sha256(token.encode()).hexdigest()) for name, token in TOKENS.items()]
    agent.host.tokens = TokenTable(entries)
    return agent


@pytest.fixture
def agent() -> StillAgent:
    return still()


@pytest_asyncio.fixture
async def client(agent: StillAgent) -> AsyncIterator[TestClient]:
    async with serving(agent) as one:
        yield one


def bearer(scope: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[scope]}"}


async def refused(client: TestClient, method: str, path: str, **more: Any) -> tuple[int, dict[str, Any]]:
    """Status and error, after a look at the shape that every error has."""
    async with client.request(method, path, **more) as answer:
        assert answer.content_type == "application/json"
        assert answer.headers["Cache-Control"] == "no-store"
        document = json.loads(await answer.text())
        assert set(document) == {"error"}
        assert set(document["error"]) == {"message", "type", "code", "param", "detail"}
        assert (document["error"]["type"], document["error"]["param"]) == ("no_vacancy", None)
        return answer.status, document["error"]


# Who gets in


async def test_health_and_bare_readiness_are_public_and_say_nothing_else(
    agent: StillAgent, client: TestClient
):
    agent.missing = ["presence has no fresh sample"]
    async with client.get("/healthz") as answer:
        assert (answer.status, await answer.json()) == (200, {"alive": True})
    async with client.get("/readyz") as answer:
        assert (answer.status, await answer.json()) == (503, {"ready": False})
    agent.missing = []
    async with client.get("/readyz") as answer:
        assert (answer.status, await answer.json()) == (200, {"ready": True})


async def test_readiness_in_detail_is_for_readers(agent: StillAgent, client: TestClient):
    agent.missing = ["presence has no fresh sample"]
    async with client.get("/readyz", headers=bearer("read")) as answer:
        assert answer.status == 503
        assert await answer.json() == {"ready": False, "missing": ["presence has no fresh sample"]}
    for scope in ("borrow", "admin", "relay"):
        async with client.get("/readyz", headers=bearer(scope)) as answer:
            assert await answer.json() == {"ready": False}


@pytest.mark.parametrize(("method", "path"), [*READS, *CHANGES])
@pytest.mark.parametrize("scope", sorted(TOKENS))
async def test_no_scope_contains_another(
    agent: StillAgent, client: TestClient, method: str, path: str, scope: str
):
    needed = "read" if (method, path) in READS else "admin"
    async with client.request(method, path, headers=bearer(scope)) as answer:
        assert (answer.status != 401) == (scope == needed)
    counts = (agent.host.auth.allowed[needed], agent.host.auth.denied[needed])
    assert counts == ((1, 0) if scope == needed else (0, 1))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer nonsense"},
        {"Authorization": TOKENS["read"]},
        {"Authorization": f"Basic {TOKENS['read']}"},
        {"Authorization": f"Bearer {TOKENS['read']}x"},
        {"x-api-key": TOKENS["admin"], "Authorization": f"Bearer {TOKENS['read']}"},
        {"Authorization": "Bearer \udce9\udcff"},
    ],
)
async def test_whoever_has_no_token_is_told_which_is_needed_and_how_to_send_it(
    agent: StillAgent, client: TestClient, headers: dict[str, str]
):
    async with client.get("/status", headers=headers) as answer:
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="vacancy"'
    status, error = await refused(client, "GET", "/status", headers=headers)
    assert (status, error["code"]) == (401, "unauthorized")
    assert "the scope read" in error["message"]
    assert "Authorization: Bearer TOKEN" in error["message"]
    assert agent.host.auth.denied == {"read": 2}


async def test_a_token_may_come_as_an_api_key_too(client: TestClient):
    async with client.get("/status", headers={"x-api-key": TOKENS["read"]}) as answer:
        assert answer.status == 200


async def test_this_machine_gets_in_without_a_token_only_where_it_is_trusted(
    agent: StillAgent, client: TestClient
):
    async with client.post("/admin/resume") as answer:
        assert answer.status == 401
    agent.host.access = AccessSettings(trust_loopback=True)
    for method, path in (("GET", "/status"), ("POST", "/admin/resume")):
        async with client.request(method, path) as answer:
            assert answer.status == 200
    async with client.get("/readyz") as answer:
        assert await answer.json() == {"ready": True, "missing": []}
    async with client.get("/status", headers={"Authorization": "Bearer nonsense"}) as answer:
        assert answer.status == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Host": "rebound.example:8470"},
        {"Host": "rebound.example:8470", "Origin": "http://rebound.example:8470"},
        {"Host": "192.0.2.1"},
        {"Host": "[::1"},
        {"Origin": "https://127.0.0.1:{port}"},
    ],
)
async def test_a_web_page_in_a_browser_here_is_not_this_machine(
    agent: StillAgent, client: TestClient, headers: dict[str, str]
):
    agent.host.access = AccessSettings(trust_loopback=True)
    sent = {name: value.format(port=client.port) for name, value in headers.items()}
    async with client.post("/admin/lending", headers=sent, data='{"enabled":true}') as answer:
        assert answer.status == 401
    assert agent.asked == []


async def test_the_page_that_the_agent_serves_itself_is_this_machine(agent: StillAgent, client: TestClient):
    agent.host.access = AccessSettings(trust_loopback=True)
    for name in (f"127.0.0.1:{client.port}", f"localhost:{client.port}"):
        headers = {"Host": name, "Origin": f"http://{name}"}
        async with client.post("/admin/resume", headers=headers) as answer:
            assert answer.status == 200


# What a wrong request is told


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("{", "the body is not JSON: "),
        ("for=2h", "the body is not JSON: "),
        ("\xff", "the body is not JSON: "),
        ("[]", "the body must be a JSON object"),
        ('"2h"', "the body must be a JSON object"),
        ('{"for": "2 hours"}', '"for" must be a duration such as 45m, 2h or 1h30m'),
        ('{"fro": "2h"}', "unknown key 'fro'; known keys: for, until"),
        ('{"until": "2001-01-01T00:00:00Z"}', '"until" must lie in the future'),
    ],
)
async def test_a_wrong_body_is_told_what_to_change_and_changes_nothing(
    agent: StillAgent, client: TestClient, body: str, told: str
):
    status, error = await refused(
        client, "POST", "/admin/pause", headers=bearer("admin"), data=body.encode("latin-1")
    )
    assert (status, error["code"]) == (400, "bad_request")
    assert told in error["message"]
    assert agent.asked == []


async def test_an_unknown_resource_is_not_found_and_the_known_ones_are_named(client: TestClient):
    status, error = await refused(
        client, "POST", "/admin/resources/gpu%207", headers=bearer("admin"), json={"enabled": False}
    )
    assert status == 404
    assert error["message"] == "there is no resource 'gpu 7'; there are: gpu, ram, cpu"


async def test_an_unknown_path_names_the_known_ones(client: TestClient):
    status, error = await refused(client, "GET", "/api/status")
    assert status == 404
    assert "there is no /api/status here" in error["message"]
    assert "/status" in error["message"].split(": ")[1]
    assert "/admin/holds/{id}" in error["message"]


async def test_another_method_names_the_right_one(client: TestClient):
    async with client.get("/admin/pause", headers=bearer("admin")) as answer:
        assert answer.headers["Allow"] == "POST"
    status, error = await refused(client, "GET", "/admin/pause", headers=bearer("admin"))
    assert (status, error["message"]) == (405, "/admin/pause does not take GET; it takes POST")


async def test_a_body_without_end_is_not_read(agent: StillAgent, client: TestClient):
    status, error = await refused(
        client, "POST", "/admin/pause", headers=bearer("admin"), data=b" " * (MAX_BODY + 1)
    )
    assert (status, error["code"]) == (413, "body_too_large")
    assert agent.asked == []


async def test_a_switch_that_could_not_be_saved_says_that_it_is_in_force(
    agent: StillAgent, client: TestClient, monkeypatch: pytest.MonkeyPatch
):
    async def full(_until: object) -> None:
        raise StoreError("cannot write it: disk full")

    monkeypatch.setattr(agent, "pause", full)
    status, error = await refused(client, "POST", "/admin/pause", headers=bearer("admin"))
    assert (status, error["code"]) == (500, "not_saved")
    assert error["message"] == "in force now, but not over a restart: cannot write it: disk full"


@pytest.mark.parametrize("number", ["x", "-1", "1.5", "%20", "1" * 21, "%D9%A1"])
async def test_what_is_no_jobs_number_is_told_so(client: TestClient, number: str):
    status, error = await refused(client, "DELETE", f"/admin/holds/{number}", headers=bearer("admin"))
    assert status == 400
    assert error["message"].endswith(
        "is not the number of a hold: `vacancy holds` lists them (GET /admin/holds)"
    )


async def test_only_a_hold_can_be_released(agent: StillAgent, client: TestClient):
    job = agent.ledger.reserve("llm", agent.clock.now(), borrower="ci", model="m")
    assert isinstance(job, Job)
    status, error = await refused(client, "DELETE", "/admin/holds/1", headers=bearer("admin"))
    assert (status, error["message"]) == (409, "job 1 is forwarding, not held")
    status, error = await refused(client, "DELETE", "/admin/holds/2", headers=bearer("admin"))
    assert (status, error["message"]) == (404, "there is no hold 2")
    agent.ledger.hold(job.id, "the borrower left", agent.clock.now())
    async with client.get("/admin/holds", headers=bearer("admin")) as answer:
        (hold,) = (await answer.json())["holds"]
        assert (hold["id"], hold["why"], hold["borrower"]) == ("1", "the borrower left", "ci")
    async with client.delete("/admin/holds/1", headers=bearer("admin")) as answer:
        assert (answer.status, await answer.json()) == (200, {"released": "1"})
    assert agent.asked == [("release", 1)]
    status, _ = await refused(client, "DELETE", "/admin/holds/1", headers=bearer("admin"))
    assert status == 404


async def test_metrics_are_prometheus_text(client: TestClient):
    async with client.get("/metrics", headers=bearer("read")) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        names = {family.name for family in text_string_to_metric_families(await answer.text())}
    assert {"vacancy_lending_allowed", "vacancy_resource_free_bytes", "vacancy_auth"} <= names


async def test_a_debug_window_is_opened_and_shown(agent: StillAgent, client: TestClient):
    async with client.post("/admin/debug", headers=bearer("admin"), json={"for": "10m"}) as answer:
        until = (await answer.json())["debugUntil"]
    assert until == rfc3339(WallTime(agent.clock.wall() + 600))
    async with client.get("/status", headers=bearer("read")) as answer:
        assert (await answer.json())["debugUntil"] == until
    async with client.post("/admin/debug", headers=bearer("admin"), json={"for": "0s"}) as answer:
        assert (await answer.json())["debugUntil"] is None


async def test_diagnostics_are_a_file_to_save(agent: StillAgent, client: TestClient):
    async with client.get("/admin/diagnostics", headers=bearer("admin")) as answer:
        assert answer.content_type == "application/x-tar"
        assert answer.headers["Content-Disposition"] == 'attachment; filename="vacancy-diagnostics.tar"'
        assert answer.headers["Cache-Control"] == "no-store"
        content = await answer.read()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert tar.getnames()[0] == "vacancy-diagnostics/about.json"
