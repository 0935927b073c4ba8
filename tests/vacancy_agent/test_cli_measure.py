"""`vacancy measure` as a person runs it: a piece of a manifest, or what to do instead."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from standins.agents import manifest
from standins.ollama_server import OllamaStandin
from vacancy_agent import cli, cli_measure
from vacancy_agent.upstreams.measure import Measured
from vacancy_api.manifest import load_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.ollama_lab import OllamaLab

MIB = 1 << 20
GPU = {"name": "gpu", "type": "nvidia", "device": "GPU-5c89852c-d268-4dfc-8d9a-7b3d3a9a1b2c"}
RAM = {"name": "ram", "type": "memory"}


class Command:
    """`vacancy measure ...` in this process: its code, and what it wrote."""

    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._folder = folder
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        self.typed: str | None = None
        """What the person types; None: nobody is there."""

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        stdin = io.StringIO(self.typed or "")
        stdin.isatty = lambda: self.typed is not None  # type: ignore[method-assign]
        self._monkeypatch.setattr(sys, "stdin", stdin)
        self._capsys.readouterr()
        try:
            code = cli.main(["measure", *argv, "--state-dir", str(self._folder / "state")])
        except SystemExit as end:
            code = int(end.code or 0)
        shown = self._capsys.readouterr()
        return code, shown.out, shown.err

    def manifest(self, target: str, *resources: dict[str, str], **changes: Any) -> str:
        """A LendingHost whose upstream is this Ollama."""
        given = {"dialect": "ollama", "resource": resources[0]["name"]} | changes
        given["alsoRequires"] = [one["name"] for one in resources[1:]]
        path = self._folder / "host.json"
        path.write_text(json.dumps(manifest(target, **given, spec_resources=list(resources))))
        return str(path)


@pytest.fixture
def measure(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(tmp_path, capsys, monkeypatch)


@pytest.fixture
def server() -> Iterator[OllamaStandin]:
    with OllamaStandin() as one:
        yield one


# What is printed


def test_the_piece_is_one_that_a_manifest_takes(tmp_path: Path):
    import yaml

    measured = Measured("hub.example/team/model:7b", 9 * MIB + 1, 9 * MIB + 1, 4096)
    text = cli_measure.fragment(measured, 500, on_card=True)
    assert text.splitlines()[0] == "# 10 MiB on the card, context 4096; 500 MiB of headroom"
    models = yaml.safe_load(text)["models"]
    document = manifest("http://127.0.0.1:9", dialect="ollama", models=models)
    (tmp_path / "host.json").write_text(json.dumps(document))
    (item,) = load_manifest(tmp_path / "host.json").spec.upstreams[0].models.items
    assert (item.name, item.min_free_mib, item.resident_min_free_mib) == (measured.model, 510, 0)


@pytest.mark.parametrize("name", ['odd"name', "a: b", "#x", "-"])
def test_a_name_that_yaml_would_read_otherwise_is_quoted(name: str):
    import yaml

    text = cli_measure.fragment(Measured(name, MIB, 0, None), 500, on_card=False)
    assert yaml.safe_load(text)["models"]["items"] == [{"name": name, "minFreeMiB": 501}]


# With a server


@pytest.mark.component
def test_a_model_is_measured_on_the_card_of_its_manifest(server: OllamaStandin, measure: Command):
    path = measure.manifest(server.url, GPU, RAM)
    code, out, err = measure("Small", "--manifest", path, "--num-ctx", "8192")
    assert code == 0
    assert out.splitlines()[-2:] == ["    - name: small:latest", "      minFreeMiB: 8724"]
    assert err == "loading Small ...\n"
    assert server.report()["loaded"] == []


@pytest.mark.component
@pytest.mark.parametrize("part", [0.5, 0.0])
def test_a_model_that_spills_from_the_card_does_not_fit(server: OllamaStandin, measure: Command, part: float):
    server.behave(on_card=part)
    code, out, err = measure("tiny", "--manifest", measure.manifest(server.url, GPU))
    outside = round(1024 * (1 - part))
    assert (code, out) == (1, "")
    assert f"tiny:latest does not fit: {outside} of its 1024 MiB are not on the card" in err


@pytest.mark.component
def test_where_main_memory_is_lent_that_is_what_counts(server: OllamaStandin, measure: Command):
    server.behave(on_card=0.0)
    path = measure.manifest(server.url, RAM)
    code, out, _ = measure("tiny", "--manifest", path, "--headroom", "100")
    assert code == 0
    assert out.startswith("# 1024 MiB in main memory, context 4096; 100 MiB of headroom\n")
    server.behave(on_card=0.75)
    code, out, err = measure("tiny", "--manifest", path)
    assert code == 0
    assert out.startswith("# 256 MiB in main memory")
    assert "768 MiB of it are on a card, which the manifest does not lend with it" in err


@pytest.mark.component
def test_slots_that_share_a_context_are_told(server: OllamaStandin, measure: Command):
    server.behave(parallel=4)
    code, out, err = measure("tiny", "--target", server.url, "--num-ctx", "4096")
    assert code == 0
    assert "context 16384" in out
    assert "asked for a context of 4096; the server lists 16384, for all its slots" in err


@pytest.mark.component
def test_the_owners_model_is_unloaded_only_where_somebody_agrees(server: OllamaStandin, measure: Command):
    import urllib.request

    def load() -> None:
        body = json.dumps({"model": "wide", "prompt": "hi", "stream": False}).encode()
        with urllib.request.urlopen(f"{server.url}/api/generate", body, timeout=10) as answer:  # noqa: S310
            answer.read()

    load()
    refused = "vacancy measure: the server holds wide:latest: give --yes to have it unloaded\n"
    assert measure("tiny", "--target", server.url) == (3, "", refused)
    for typed in ("n\n", "\n", ""):
        measure.typed = typed
        code, out, err = measure("tiny", "--target", server.url)
        assert (code, out) == (3, "")
        assert err.startswith("The server holds wide:latest, which will be unloaded. Go on? [y/N] ")
    assert [one["name"] for one in server.report()["loaded"]] == ["wide:latest"]
    measure.typed = "y\n"
    code, out, err = measure("tiny", "--target", server.url)
    assert (code, "unloading wide:latest ..." in err) == (0, True)
    load()
    measure.typed = None
    assert measure("tiny", "--target", server.url, "--yes")[0] == 0
    assert server.report()["loaded"] == []


@pytest.mark.component
def test_a_server_that_is_not_there_and_a_model_that_is_not(server: OllamaStandin, measure: Command):
    code, out, err = measure("tiny", "--target", "http://127.0.0.1:9")
    assert (code, out) == (1, "")
    assert err.startswith("vacancy measure: what the server holds cannot be read: ")
    code, out, err = measure("none", "--target", server.url)
    assert (code, out) == (2, "")
    assert "`ollama pull none` gets it" in err


@pytest.mark.component
def test_a_credential_of_the_manifest_is_a_file_beside_the_agents(
    server: OllamaStandin, measure: Command, tmp_path: Path
):
    named = {"credentialSecretRef": {"name": "key", "key": "token"}}
    path = measure.manifest(server.url, RAM, **named)
    code, _, err = measure("tiny", "--manifest", path)
    where = tmp_path / "state" / "secrets" / "key" / "token"
    assert (code, f"write it to {where}" in err) == (2, True)
    where.parent.mkdir(parents=True)
    where.write_text("secret\n")
    assert measure("tiny", "--manifest", path)[0] == 0


# What is wrong before anything is asked


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["m"], "one of the arguments --manifest --target is required"),
        (["m", "--target", "http://x", "--manifest", "y"], "not allowed with argument"),
        (["m", "--target", "ftp://x"], "--target must start with http:// or https://"),
        (["m", "--target", "http://x/v1"], "must not have a path"),
        (["m", "--target", "http://x", "--upstream", "up"], "--upstream goes with --manifest"),
        (["m", "--target", "http://x", "--num-ctx", "0"], "must be a whole number above 0; got '0'"),
        (["m", "--target", "http://x", "--headroom", "-1"], "headroom"),
        (["", "--target", "http://x"], "MODEL must be the name of a model"),
        (["a\nb", "--target", "http://x"], "MODEL must be the name of a model"),
        (["m:cloud", "--target", "http://x"], "runs in Ollama's cloud and takes no memory here"),
        (["m", "--manifest", "nowhere.yaml"], "nowhere.yaml: "),
    ],
)
def test_wrong_input(measure: Command, argv: list[str], told: str):
    code, out, err = measure(*argv)
    assert (code, out) == (2, "")
    assert told in err
    assert "Traceback" not in err


@pytest.mark.parametrize("dialect", sorted(cli_measure.OTHERS))
def test_other_servers_do_not_tell_and_there_is_another_way(measure: Command, dialect: str):
    path = measure.manifest("http://127.0.0.1:9", RAM, dialect=dialect)
    code, _, err = measure("m", "--manifest", path)
    assert code == 2
    assert f"no ollama upstream, and only Ollama tells what a model takes; {dialect}: " in err
    code, _, err = measure("m", "--manifest", path, "--upstream", "up")
    assert (code, f"up is {dialect}: {cli_measure.OTHERS[dialect]}" in err) == (2, True)


def test_of_several_servers_one_must_be_named(measure: Command, tmp_path: Path):
    path = measure.manifest("http://127.0.0.1:9", RAM)
    document = json.loads((tmp_path / "host.json").read_text())
    (first,) = document["spec"]["upstreams"]
    document["spec"]["upstreams"].append(first | {"name": "two", "port": first["port"] + 1})
    (tmp_path / "host.json").write_text(json.dumps(document))
    code, _, err = measure("m", "--manifest", path)
    assert (code, "give --upstream: up, two" in err) == (2, True)
    code, _, err = measure("m", "--manifest", path, "--upstream", "three")
    assert (code, "there is no upstream three; the manifest has: up, two" in err) == (2, True)


@pytest.mark.component
def test_real_ollama(ollama: OllamaLab, measure: Command):
    path = measure.manifest(ollama.url, RAM)
    code, out, err = measure("tiny", "--manifest", path, "--num-ctx", "2048")
    assert (code, err) == (0, "loading tiny ...\n")
    assert "MiB in main memory, context 2048; 500 MiB of headroom\n" in out
    assert out.splitlines()[-2] == "    - name: tiny:latest"
    code, _, err = measure("tiny", "--target", ollama.url, "--num-ctx", "2048")
    assert code == 0
    code, _, err = measure("no-such-model", "--target", ollama.url)
    assert (code, "`ollama pull no-such-model` gets it" in err) == (2, True)
