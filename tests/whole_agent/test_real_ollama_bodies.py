"""The real Ollama behind a whole agent, and bodies of two readings: what ran is what was judged."""

from __future__ import annotations

import io
import json
import random
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from standins.agents import lender, manifest
from standins.until import until
from vacancy_agent.core.ledger import Ledger
from vacancy_edge import LARGE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from lab.ollama_lab import OllamaLab
    from standins.agents import Lender
    from vacancy_agent.core.facts import Instant

pytestmark = [pytest.mark.component, pytest.mark.ollama]
TYPED = {"Content-Type": "application/json"}
BODIES = 80
OWN, ODD = ("model", "prompt", "options", "stream", "keep_alive"), 0.06
MODELS = (
    '"tiny"',
    '"Tiny:latest"',
    '"small"',
    '"SMALL"',
    '" small"',
    '"library/small:latest"',
    '"small:cloud"',
    "null",
)
PLAIN = '{"num_predict":1,"num_ctx":512}'
VALUES = {
    "model": (*MODELS, *MODELS[:4]),
    "prompt": ('"hi"', '"hi"', '"hi"', '""', "null"),
    "options": (*[PLAIN] * 6, '{"num_predict":1,"num_ctx":512,"Num_Ctx":9}', "[]"),
    "stream": ("false", "true", "null"),
    "keep_alive": ("300", "-1", '"24h"', '"5m"', '"never"'),
}


@pytest_asyncio.fixture
async def lent(ollama: OllamaLab, tmp_path: Path) -> AsyncIterator[Lender]:
    footprints = {"models": {"items": [{"name": "Library/WIDE", "minFreeMiB": 67_000_000}]}}
    async with lender(tmp_path / "agent", manifest(ollama.url, dialect="ollama", **footprints)) as lent:
        await lent.until(lambda up: up["lendable"])
        yield lent


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The models under which jobs were entered."""
    names: list[str | None] = []
    reserve = Ledger.reserve

    def watched(
        ledger: Ledger, upstream: str, now: Instant, borrower: str, model: str | None, *rest: Any
    ) -> Any:
        job = reserve(ledger, upstream, now, borrower, model, *rest)
        names.append(model)
        return job

    monkeypatch.setattr(Ledger, "reserve", watched)
    return names


def body_of(chance: random.Random) -> str:
    """Mostly a plain body; now and then a key in another spelling, twice, or something after the end."""
    keys = [key for key in OWN if key in {"model", "options"} or chance.random() < 0.7]
    keys += [chance.choice(OWN)] if chance.random() < ODD else []
    chance.shuffle(keys)
    pairs = [f'"{spelled(key, chance)}": {chance.choice(VALUES[key])}' for key in keys]
    return "{" + ", ".join(pairs) + "}" + ('{"model":"small"}' if chance.random() < ODD else "")


def spelled(key: str, chance: random.Random) -> str:
    if chance.random() >= ODD:
        return key
    return chance.choice(
        [key.upper(), key.title(), f"\\u{ord(key[0]):04x}{key[1:]}", key.replace("k", "\u212a")]
    )


async def test_what_ran_is_what_was_judged(lent: Lender, ollama: OllamaLab, judged: list[str | None]) -> None:
    """A model that ran is listed for longer than before; that may be written a moment after the reply."""
    chance = random.Random(0)  # noqa: S311 - the same bodies in every run, no secret
    ran, last = 0, set[str | None]()
    for _ in range(BODIES):
        body, before = body_of(chance), listed(ollama)
        judged.clear()
        async with lent.ask("POST", "/api/generate", data=body.encode(), headers=TYPED) as got:
            await got.read()
            assert got.status in {200, 400, 403, 404}, body
        asked = set(judged)
        if got.status == 200:
            await until(lambda before=before, asked=asked: asked <= touched(before, listed(ollama)))  # type: ignore[misc]
            ran += 1
        assert touched(before, listed(ollama)) <= asked | last, body
        last = asked
        await lent.until(lambda up: not up["active"] and not up["held"])
    assert ran > BODIES / 6, "hardly a body was one that could run"


def listed(ollama: OllamaLab) -> dict[str, str]:
    """Until when each model is there, none of them for ever."""
    rows = {name: row["expires_at"] for name, row in ollama.loaded().items()}
    assert all(end < "2100" for end in rows.values())
    return rows


def touched(before: dict[str, str], after: dict[str, str]) -> set[str | None]:
    return {name for name, expires_at in after.items() if before.get(name) != expires_at}


@pytest.mark.parametrize("name", ["wide", "Wide:latest", "registry.ollama.ai/library/WIDE", " wide"])
async def test_a_footprint_holds_for_every_spelling(lent: Lender, ollama: OllamaLab, name: str) -> None:
    async with lent.ask("POST", "/api/generate", json={"model": name, "prompt": "hi"}) as got:
        assert got.headers["X-Vacancy-Reason"] == "insufficient_capacity"
    assert not ollama.loaded()


PADDING = "x" * (LARGE + 1)
LARGE_ONES = [
    ({"model": "tiny", "MODEL": "small"}, 400, None),
    ({"model": "tiny:cloud"}, 403, None),
    ({"model": "tiny", "keep_alive": 0}, 403, None),
    ({"model": "tiny", "prompt": "hi", "keep_alive": -1}, 200, "tiny:latest"),
    ({"model": "Tiny", "prompt": "hi", "keep_alive": 300}, 200, "tiny:latest"),
]


@pytest.mark.parametrize(("body", "status", "model"), LARGE_ONES)
async def test_a_large_body_is_read_alike(
    lent: Lender, ollama: OllamaLab, body: dict[str, Any], status: int, model: str | None
) -> None:
    options = {"num_predict": 1, "num_ctx": 512}
    raw = json.dumps(body | {"stream": False, "options": options, "padding": PADDING}).encode()
    async with lent.ask("POST", "/api/generate", data=io.BytesIO(raw), headers=TYPED) as got:
        answer = await got.json()
        assert got.status == status, answer
    assert set(ollama.loaded()) == ({model} if model else set())
    listed(ollama)
