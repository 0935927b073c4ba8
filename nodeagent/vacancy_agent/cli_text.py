"""What the agent says, for people: pure text out of the JSON of its API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Document = dict[str, Any]

SENTENCES = {
    "lending_disabled": "lending is off for the whole machine",
    "owner_active": "someone is at this machine, or was a moment ago",
    "resource_disabled": "a resource that it needs is switched off",
    "resource_unmeasured": "a resource that it needs could not be measured just now",
    "insufficient_capacity": "too little is free on a resource that it needs",
    "resource_pressured": "the owner's own work keeps a resource busy",
    "upstream_not_on_gpu": "its model is not on the GPU",
    "resource_busy": "a resource that it needs is in use by another job",
    "upstream_unavailable": "its server does not answer",
}

LOADS = {
    "off": "not judged",
    "suspended": "not judged while borrowed work runs",
    "unknown": "not known",
    "calibrating": "still being learned",
    "engaged": "high",
}
"""States of pressure, where they are worth a line."""

SWITCHED_BY = {
    "spec": "switched off in the manifest",
    "schedule": "outside the hours of its schedule",
    "cluster": "paused by the cluster",
    "local": "paused on this machine (vacancy resume ends it)",
}

SWITCHED_OFF = (
    "Lending is off: switched off on this machine through the API, which alone switches it on again "
    '(POST /admin/lending {"enabled": true}).'
)
"""`local`, where it is the switch: a resume leaves it."""

RECLAIMS = {
    "waiting": "the machine is wanted back: its work may end until the deadline",
    "stood_down": "a give-back was called off, since its cause was gone",
    "proceeding": "its work was taken back",
}
UNLOADS = {True: "showed that it let go", False: "has not shown that it let go", None: "has not answered yet"}


def printable(value: Any) -> Any:
    """`value`, an answer of the API, with every character that a terminal would obey written as its escape.

    A borrower chooses the model's name, and could otherwise clear the owner's screen or hide a line.
    """
    if isinstance(value, str):
        return value if value.isprintable() else "".join(map(_shown, value))
    if isinstance(value, list):
        return [printable(one) for one in value]
    if isinstance(value, dict):
        return {key: printable(one) for key, one in value.items()}
    return value


def status(document: Document) -> str:
    """`vacancy status`."""
    agent = document["agent"]
    parts = _first_lines(document)
    parts += [
        "",
        *_table(
            ("RESOURCE", "TYPE", "STATE", "FREE", "TOTAL", "USED"), map(_resource_row, agent["resources"])
        ),
    ]
    columns = ("UPSTREAM", "DIALECT", "PORT", "LENDABLE", "REASON", "ACTIVE", "HELD")
    parts += ["", *_table(columns, map(_upstream_row, agent["upstreams"]))]
    parts += _credit_lines(document)
    parts += _load_lines(document)
    parts += _server_lines(document)
    if document.get("debugUntil"):
        parts += ["", debugging(document)]
    parts += _condition_lines(document["conditions"])
    return "\n".join(parts)


def who(document: Document) -> str:
    """`vacancy who`: current work, then today's use per borrower."""
    owner = document["owner"]
    rows = [(w["borrower"], w["upstream"], w["model"] or "-", w["phase"], w["since"]) for w in owner["work"]]
    parts = (
        list(_table(("BORROWER", "UPSTREAM", "MODEL", "PHASE", "SINCE"), rows))
        if rows
        else ["Nobody is using it."]
    )
    used = [
        (u["borrower"], str(u["requests"]), f"{u['seconds']:.0f}", _tokens(u["tokens"]))
        for u in owner["usageToday"]
    ]
    if used:
        parts += ["", "Today:", *_table(("BORROWER", "REQUESTS", "SECONDS", "TOKENS"), used)]
    return "\n".join(parts)


def why(document: Document) -> str:
    """`vacancy why`: one sentence for the machine, one for each upstream."""
    agent = document["agent"]
    parts = [*_first_lines(document), *_resource_sentences(agent["resources"])]
    for upstream in agent["upstreams"]:
        parts += _upstream_sentences(upstream)
        parts += _server_sentences(document, upstream)
    return "\n".join(parts)


def paused(document: Document) -> str:
    """The answer to a pause: a confirmation, also where something else keeps lending off for longer."""
    state = document["lending"]
    return _lending_line(state) if state["by"] == "local" else f"Paused. {_lending_line(state)}"


def resumed(document: Document) -> str:
    """The answer to the end of a pause; the machine may still not lend."""
    state = document["lending"]
    if state["allowed"]:
        return _lending_line(state)
    off = SWITCHED_OFF if state["by"] == "local" else _lending_line(state)
    return f"Not paused any more. {off}"


def debugging(document: Document) -> str:
    """The answer to a debug window that was opened, or ended."""
    until = document["debugUntil"]
    return f"Every request is logged until {until}." if until else "Requests are not logged any more."


def holds(document: Document) -> str:
    """`vacancy holds`."""
    if "released" in document:
        return f"Released {document['released']}."
    rows = [
        (h["id"], h["upstream"], h["borrower"], h["model"] or "-", h["since"], h["why"])
        for h in document["holds"]
    ]
    if not rows:
        return "Nothing is held."
    table = _table(("ID", "UPSTREAM", "BORROWER", "MODEL", "SINCE", "WHY"), rows)
    return "\n".join([*table, "", "Free one with: vacancy holds --release ID"])


def _upstream_sentences(upstream: Document) -> list[str]:
    name, held = upstream["name"], upstream["held"]
    reason = upstream["reason"] or "unknown"
    because = SENTENCES.get(reason, f"of {reason}")
    if not upstream.get("bound", True):
        because = f"port {upstream['port']} cannot be listened on"
    lends = "lends" if upstream["lendable"] else f"does not lend, because {because} ({reason})"
    sentences = [f"{name}: {lends}."]
    if held:
        jobs = "1 job is" if held == 1 else f"{held} jobs are"
        sentences.append(f"{name}: {jobs} held until the end is proved (vacancy holds).")
    return sentences


def _server_sentences(document: Document, upstream: Document) -> list[str]:
    """What is to be known of its server: nothing where all is well, or where the agent does not say."""
    name = upstream["name"]
    more = document.get("upstreams", {}).get(name, {})
    server, reclaim = more.get("server", {}), more.get("reclaim")
    sentences = []
    if server.get("reachable") is False:
        sentences.append(f"{name}: its server at {server['target']} cannot be reached ({server['why']}).")
    if upstream.get("listener") == "listens_on_network":
        sentences.append(
            f"{name}: its server takes connections from the network, past this agent: bind it to 127.0.0.1."
        )
    return [*sentences, *(_reclaim_sentences(name, reclaim) if reclaim else ())]


def _reclaim_sentences(name: str, reclaim: Document) -> list[str]:
    """The last decision about giving back, and what the server showed of an unload."""
    told = RECLAIMS.get(reclaim["phase"], reclaim["phase"])
    sentences = [f"{name}: {told} ({reclaim['since']})."]
    unload = reclaim.get("unload")
    if unload is not None:
        seen = "" if unload["shown"] else f" ({unload['why']})"
        sentences.append(f"{name}: it was asked to unload and {UNLOADS[unload['shown']]}{seen}.")
    return sentences


def _credit_lines(document: Document) -> list[str]:
    """Whose newest request was not charged for its model again."""
    upstreams = document.get("upstreams", {})
    applied = {name: more.get("residency") for name, more in upstreams.items() if more.get("residency")}
    lines = [
        f"{name}: charged {credit['chargedMiB']} MiB for {credit['model'] or 'its model'} ({credit['why']})."
        for name, credit in applied.items()
    ]
    return ["", *lines] if lines else []


def _load_lines(document: Document) -> list[str]:
    """GPUs whose load keeps work away or is not judged, and servers whose load is not seen."""
    agent, loads = document["agent"], document["owner"].get("loads", {})
    lines = []
    for resource in agent["resources"]:
        state = (resource.get("pressure") or {}).get("state", "clear")
        why = loads.get(resource["name"], {}).get("why")
        if state != "clear" and (why or state != "off"):  # off by the manifest is no news
            lines.append(
                f"{resource['name']}: the owner's load is {LOADS[state]}{f' ({why})' if why else ''}."
            )
    lines += [
        f"{upstream['name']}: its work runs, but no process of its server uses a GPU."
        for upstream in agent["upstreams"]
        if upstream.get("unseenGpuWork")
    ]
    return ["", *lines] if lines else []


def _server_lines(document: Document) -> list[str]:
    upstreams = document["agent"]["upstreams"]
    lines = [line for upstream in upstreams for line in _server_sentences(document, upstream)]
    return ["", *lines] if lines else []


def _first_lines(document: Document) -> list[str]:
    """What is true of the whole machine."""
    state = document["agent"]["lending"]
    is_switch = state["by"] == "local" and document.get("switchedOff")
    return [SWITCHED_OFF if is_switch else _lending_line(state), _presence_line(document["owner"])]


def _resource_sentences(resources: Iterable[Document]) -> list[str]:
    """Why a resource is not known, or not lent."""
    return [
        f"{one['name']}: {'not lent' if one['state'] == 'ready' else one['state']} ({one['reason']})."
        for one in resources
        if one.get("reason")
    ]


def _lending_line(state: Document) -> str:
    if state["allowed"]:
        return "Lending is on."
    until = f" until {state['pausedUntil']}" if state.get("pausedUntil") else ""
    return f"Lending is off{until}: {SWITCHED_BY.get(state['by'], state['by'])}."


def _presence_line(owner: Document) -> str:
    return f"Owner: {owner['presence']} ({owner['why']})."


def _condition_lines(conditions: Iterable[Document]) -> list[str]:
    wrong = [c for c in conditions if c["status"] != "True"]
    return ["", *(f"{c['type']}={c['status']} {c['reason']}: {c['message']}" for c in wrong)] if wrong else []


def _resource_row(resource: Document) -> tuple[str, ...]:
    name = resource["name"] + ("" if resource["enabled"] else " (off)")
    state = resource["state"]
    if resource.get("reason"):
        state = f"{'not lent' if state == 'ready' else state}: {resource['reason']}"
    return (
        name,
        resource["type"],
        state,
        _mib(resource.get("freeMiB")),
        _mib(resource.get("totalMiB")),
        _percent(resource),
    )


def _upstream_row(upstream: Document) -> tuple[str, ...]:
    return (
        upstream["name"],
        upstream["dialect"],
        str(upstream["port"]),
        "yes" if upstream["lendable"] else "no",
        upstream["reason"] or "-",
        str(upstream["active"]),
        str(upstream["held"]),
    )


def _tokens(value: int | None) -> str:
    return "-" if value is None else str(value)


def _mib(value: int | None) -> str:
    return "-" if value is None else f"{value / 1024:.1f}Gi"


def _percent(resource: Document) -> str:
    value = resource.get("utilizationPercent")
    return "-" if value is None else f"{value:.0f}%"


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    """Left-aligned columns, two spaces apart."""
    lines = [tuple(columns), *(tuple(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
