"""`vacancy measure MODEL`: how much memory a model takes, as a piece of a manifest.

Progress goes to standard error and the piece to standard output, so that it can be put into a file. It needs
no agent and disturbs none, except that it loads a model: pause lending first.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vacancy_agent.cli_text import printable
from vacancy_agent.store.state import default_state_dir

if TYPE_CHECKING:
    from vacancy_agent.core.settings import HostSettings, Target, UpstreamSettings
    from vacancy_agent.upstreams.measure import Measure, Measured

EXIT_OK, EXIT_RUNTIME, EXIT_INPUT, EXIT_REFUSED = 0, 1, 2, 3
MIB = 1 << 20
HEADROOM_MIB = 500
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*(:[A-Za-z0-9._-]+)?\Z")

ABOUT = """\
Loads a model into an Ollama server that holds nothing else, reads what it takes, unloads it, and prints the
entry for spec.upstreams[].models.items. Measure with the context (--num-ctx) that your clients use. What the
server holds now is unloaded first; it asks before that. Pause lending while you measure.
"""

OTHERS = {
    "llamacpp": "it holds one model from its start: read the free memory before and after starting it",
    "openai": "these servers do not tell: read the free memory before and after starting the server",
    "comfyui": "what a job takes depends on its graph: watch the free memory while your largest one runs",
    "chatterbox": "it does not tell: read the free memory before and after starting it",
}
"""Why it cannot be measured for other dialects, and what can be done instead."""


class MeasureInputError(Exception):
    """The command line or the manifest is wrong; the message says what to change."""


class MeasureRefusedError(Exception):
    """It may not be done: nobody agreed to it."""


@dataclass(frozen=True, slots=True)
class Place:
    """The server, and on what its memory is counted."""

    target: Target
    credential: str | None
    on_card: bool | None
    """Whether the manifest lends a GPU with it; None: no manifest says."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `measure` to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "measure",
        help="how much memory a model of an Ollama server takes",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="as Ollama names it, for example llama3.2:3b")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--manifest", type=Path, metavar="FILE", help="a LendingHost with an ollama upstream")
    where.add_argument(
        "--target", metavar="URL", help="the server itself, for example http://127.0.0.1:11434"
    )
    parser.add_argument("--upstream", metavar="NAME", help="which upstream, where the manifest has several")
    parser.add_argument(
        "--num-ctx", type=_positive, metavar="N", help="context in tokens (default: the model's)"
    )
    parser.add_argument(
        "--headroom",
        type=_positive,
        default=HEADROOM_MIB,
        metavar="MIB",
        help="added to it (default %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        type=_positive,
        default=600,
        metavar="S",
        help="seconds for the load (default %(default)s)",
    )
    parser.add_argument("--yes", action="store_true", help="unload what the server holds without asking")
    parser.add_argument(
        "--state-dir",
        type=Path,
        metavar="DIR",
        help=f"where secrets/NAME/KEY of the manifest is (default {default_state_dir()})",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure; returns the exit code: 0 measured, 1 it could not be, 2 wrong input, 3 nobody agreed."""
    try:
        import asyncio

        from vacancy_agent.upstreams.measure import MeasureError, NoSuchModelError
    except ModuleNotFoundError as missing:
        return _failed(f"needs the package {missing.name}: install vacancy[agent]", EXIT_RUNTIME)
    try:
        place = _place(args)
        measured = asyncio.run(_measured(args, place))
    except (MeasureInputError, NoSuchModelError) as error:
        return _failed(str(error), EXIT_INPUT)
    except MeasureRefusedError as error:
        return _failed(str(error), EXIT_REFUSED)
    except MeasureError as error:
        return _failed(str(error), EXIT_RUNTIME)
    spilled = _spilled(measured, place)
    if spilled is not None:
        return _failed(spilled, EXIT_RUNTIME)
    print(fragment(measured, args.headroom, on_card=_on_card(measured, place)))
    return EXIT_OK


def fragment(measured: Measured, headroom: int, *, on_card: bool) -> str:
    """The piece of the manifest; residentMinFreeMiB stays 0 for a server that allocates at the load."""
    outside = measured.size - measured.size_vram
    used = -(-(measured.size_vram if on_card else outside) // MIB)
    where = "on the card" if on_card else "in main memory"
    context = "" if measured.context_length is None else f", context {measured.context_length}"
    name = measured.model if PLAIN.match(measured.model) else json.dumps(measured.model)
    lines = (
        f"# {used} MiB {where}{context}; {headroom} MiB of headroom",
        "models:",
        "  items:",
        f"    - name: {name}",
        f"      minFreeMiB: {used + headroom}",
    )
    return "\n".join(lines)


async def _measured(args: argparse.Namespace, place: Place) -> Measured:
    from vacancy_agent.clock import SystemClock
    from vacancy_agent.upstreams.ask import ServerClient, open_session
    from vacancy_agent.upstreams.measure import Measure

    async with open_session() as session:
        measure = Measure(ServerClient(session, place.target, place.credential), SystemClock(), _say)
        await _make_room(args, measure)
        _say(f"loading {args.model}")
        measured = await measure.measure(args.model, args.num_ctx, args.timeout)
    context = measured.context_length
    if args.num_ctx is not None and context not in (None, args.num_ctx):
        _say(f"asked for a context of {args.num_ctx}; the server lists {context}, for all its slots")
    if place.on_card is False and measured.size_vram:
        _say(f"{measured.size_vram // MIB} MiB of it are on a card, which the manifest does not lend with it")
    return measured


async def _make_room(args: argparse.Namespace, measure: Measure) -> None:
    loaded = await measure.loaded()
    if not loaded:
        return
    held = ", ".join(loaded)
    if not args.yes:
        if not sys.stdin.isatty():
            raise MeasureRefusedError(f"the server holds {held}: give --yes to have it unloaded")
        question = f"The server holds {held}, which will be unloaded. Go on? [y/N] "
        print(question, end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:  # nothing else runs on this loop
            raise MeasureRefusedError("nothing was unloaded, and nothing measured")
    _say(f"unloading {held}")
    await measure.unload()


def _on_card(measured: Measured, place: Place) -> bool:
    """Whether the figure that counts is the card's."""
    return bool(measured.size_vram) if place.on_card is None else place.on_card


def _spilled(measured: Measured, place: Place) -> str | None:
    """Why the figure is of no use for the manifest; None: it is."""
    if not _on_card(measured, place) or measured.size_vram == measured.size:
        return None
    outside = -(-(measured.size - measured.size_vram) // MIB)
    whole = -(-measured.size // MIB)
    return (
        f"{measured.model} does not fit: {outside} of its {whole} MiB are not on the card. "
        "Free the card, or take a smaller context (--num-ctx) or model"
    )


def _place(args: argparse.Namespace) -> Place:
    from vacancy_agent.core.settings import Target
    from vacancy_api.spec_upstreams import parse_target, target_problem

    _check_model(args.model)
    if args.manifest is not None:
        return _of_manifest(args)
    if args.upstream is not None:
        raise MeasureInputError("--upstream goes with --manifest")
    url = parse_target(args.target)
    if url is None:
        raise MeasureInputError(f"--target {target_problem(args.target)}")
    return Place(Target(url.scheme, url.host, url.port), None, None)


def _check_model(model: str) -> None:
    from vacancy_dialects import is_cloud

    if not model.strip() or not model.isprintable():
        raise MeasureInputError("MODEL must be the name of a model")
    if is_cloud(model):
        raise MeasureInputError(f"{model} runs in Ollama's cloud and takes no memory here")


def _of_manifest(args: argparse.Namespace) -> Place:
    from vacancy_agent import translate
    from vacancy_agent.store.errors import StoreError
    from vacancy_agent.store.state import read_secret
    from vacancy_api.manifest import ManifestInvalid, load_manifest

    try:
        settings = translate.host_settings(load_manifest(args.manifest).spec)
    except ManifestInvalid as invalid:
        told = "; ".join(map(str, invalid.errors))
        raise MeasureInputError(f"{args.manifest}: {told}") from invalid
    upstream = _upstream(settings, args.upstream)
    credential = upstream.credential
    try:
        folder = args.state_dir or default_state_dir()
        secret = None if credential is None else read_secret(folder, credential.name, credential.key)
    except StoreError as error:
        raise MeasureInputError(str(error)) from error
    kinds = {settings.resources[name].type.value for name in upstream.requires}
    return Place(upstream.target, secret, bool(kinds & {"nvidia", "amd"}))


def _upstream(settings: HostSettings, name: str | None) -> UpstreamSettings:
    ollamas = [one for one in settings.upstreams.values() if one.dialect.value == "ollama"]
    if name is not None:
        found = settings.upstreams.get(name)
        if found is None:
            known = ", ".join(settings.upstreams) or "none"
            raise MeasureInputError(f"there is no upstream {name}; the manifest has: {known}")
        if found.dialect.value != "ollama":
            raise MeasureInputError(f"{name} is {found.dialect.value}: {OTHERS[found.dialect.value]}")
        return found
    if len(ollamas) == 1:
        return ollamas[0]
    if ollamas:
        raise MeasureInputError(f"give --upstream: {', '.join(one.name for one in ollamas)}")
    told = {one.dialect.value: OTHERS[one.dialect.value] for one in settings.upstreams.values()}
    why = "".join(f"; {dialect}: {text}" for dialect, text in told.items())
    raise MeasureInputError(
        f"the manifest has no ollama upstream, and only Ollama tells what a model takes{why}"
    )


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:12]) <= 1 << 30):
        raise argparse.ArgumentTypeError(f"must be a whole number above 0; got {text!r}")
    return int(text)


def _say(text: str) -> None:
    print(f"{printable(text)} ...", file=sys.stderr, flush=True)


def _failed(text: str, code: int) -> int:
    print(f"vacancy measure: {printable(text)}", file=sys.stderr)
    return code
