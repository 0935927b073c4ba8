"""The texts are pure: a document in, lines out."""

from __future__ import annotations

import copy

import pytest

from vacancy_agent import cli_text
from vacancy_api.reasons import Reason, http_status

STATUS = {
    "agent": {
        "lending": {"allowed": True, "pausedUntil": None, "by": None},
        "resources": [
            {
                "name": "ram",
                "type": "memory",
                "state": "ready",
                "reason": None,
                "freeMiB": 10240,
                "totalMiB": 24576,
                "utilizationPercent": None,
                "enabled": True,
            },
            {"name": "cpu", "type": "cpu", "state": "unknown", "reason": "first reading", "enabled": False},
        ],
        "upstreams": [
            {
                "name": "llama",
                "dialect": "llamacpp",
                "port": 8481,
                "lendable": False,
                "reason": "owner_active",
                "active": 1,
                "held": 2,
            }
        ],
    },
    "owner": {
        "presence": "present",
        "why": "an unlocked wayland session",
        "work": [
            {"borrower": "borrow", "upstream": "llama", "model": None, "phase": "forwarding", "since": "T"}
        ],
        "usageToday": [{"borrower": "borrow", "requests": 3, "seconds": 12.4, "tokens": 90}],
    },
    "conditions": [
        {"type": "Lendable", "status": "False", "reason": "OwnerActive", "message": "the owner is here"},
        {"type": "ConfigApplied", "status": "True", "reason": "Applied", "message": ""},
    ],
}


def test_status_shows_every_part_and_only_conditions_that_are_not_true():
    text = cli_text.status(STATUS)
    assert text.splitlines()[0] == "Lending is on."
    assert "Owner: present (an unlocked wayland session)." in text
    ram = next(line for line in text.splitlines() if line.startswith("ram"))
    assert ram.split() == ["ram", "memory", "ready", "10.0Gi", "24.0Gi", "-"]
    assert "cpu (off)" in text
    assert "llama     llamacpp  8481  no        owner_active  1       2" in text
    assert "Lendable=False OwnerActive: the owner is here" in text
    assert "ConfigApplied" not in text


@pytest.mark.parametrize(
    ("state", "why", "line"),
    [
        ("clear", None, None),
        ("off", None, None),
        ("off", "Not Supported", "gpu: the owner's load is not judged (Not Supported)."),
        ("engaged", None, "gpu: the owner's load is high."),
        ("calibrating", "it is learned", "gpu: the owner's load is still being learned (it is learned)."),
        ("suspended", None, "gpu: the owner's load is not judged while borrowed work runs."),
    ],
)
def test_a_gpus_load_is_a_line_where_it_is_news(state: str, why: str | None, line: str | None):
    loaded = copy.deepcopy(STATUS)
    card = {"name": "gpu", "type": "nvidia", "state": "ready", "enabled": True, "pressure": {"state": state}}
    loaded["agent"]["resources"].append(card)
    loaded["owner"]["loads"] = {"gpu": {"percent": None, "why": why}}
    said = [one for one in cli_text.status(loaded).splitlines() if "load is" in one]
    assert said == ([] if line is None else [line])


def test_work_that_is_not_seen_is_a_line():
    unseen = copy.deepcopy(STATUS)
    unseen["agent"]["upstreams"][0]["unseenGpuWork"] = True
    assert "llama: its work runs, but no process of its server uses a GPU." in cli_text.status(unseen)


def test_unmeasured_is_a_dash_not_a_zero():
    row = next(line for line in cli_text.status(STATUS).splitlines() if line.startswith("cpu"))
    assert "unknown: first reading" in row
    assert row.split()[-3:] == ["-", "-", "-"]


def test_who_names_the_borrower_of_now_and_of_today():
    text = cli_text.who(STATUS)
    assert "borrow    llama     -      forwarding  T" in text
    assert "borrow    3         12       90" in text


def test_who_with_nobody():
    idle = copy.deepcopy(STATUS)
    idle["owner"]["work"] = []
    idle["owner"]["usageToday"] = []
    assert cli_text.who(idle) == "Nobody is using it."


def test_why_is_a_sentence_for_each_upstream():
    text = cli_text.why(STATUS)
    assert (
        "llama: does not lend, because someone is at this machine, or was a moment ago (owner_active)."
        in text
    )
    assert "llama: 2 jobs are held until the end is proved (vacancy holds)." in text


def test_why_an_upstream_that_does_not_listen_lends_nothing():
    unbound = copy.deepcopy(STATUS)
    unbound["agent"]["upstreams"][0] |= {"bound": False, "reason": "upstream_unavailable", "held": 1}
    text = cli_text.why(unbound)
    assert "does not lend, because port 8481 cannot be listened on (upstream_unavailable)." in text
    assert "llama: 1 job is held" in text


def test_a_server_that_cannot_be_reached_is_said_and_nothing_where_it_can_or_is_unknown():
    server = {"target": "http://127.0.0.1:8080", "reachable": False, "why": "connection refused"}
    dead = STATUS | {"upstreams": {"llama": {"server": server}}}
    told = "llama: its server at http://127.0.0.1:8080 cannot be reached (connection refused)."
    assert told in cli_text.why(dead).splitlines()
    assert told in cli_text.status(dead).splitlines()
    for reachable in (True, None):
        server["reachable"] = reachable
        assert "cannot be reached" not in cli_text.why(dead) + cli_text.status(dead)
    assert "cannot be reached" not in cli_text.status(STATUS), "an agent of an earlier version"


def test_why_knows_a_sentence_for_every_reason_of_a_refusal():
    codes = {reason.value for reason in Reason if http_status(reason) == 503}
    assert codes - cli_text.SENTENCES.keys() == {"buffer_budget", "tunnel_cap"}, "these refuse one request"


def test_a_reason_of_a_later_version_is_shown_as_it_is():
    later = copy.deepcopy(STATUS)
    later["agent"]["upstreams"][0]["reason"] = "moon_phase"
    assert "because of moon_phase (moon_phase)" in cli_text.why(later)


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("local", "paused on this machine (vacancy resume ends it)"),
        ("cluster", "paused by the cluster"),
        ("spec", "switched off in the manifest"),
        ("schedule", "outside the hours of its schedule"),
        ("later", "later"),
    ],
)
def test_lending_off_says_until_when_and_by_whom(by: str, words: str):
    off = copy.deepcopy(STATUS)
    off["agent"]["lending"] = {"allowed": False, "pausedUntil": "2026-11-30T12:00:00Z", "by": by}
    for text in (cli_text.status(off), cli_text.why(off)):
        assert text.splitlines()[0] == f"Lending is off until 2026-11-30T12:00:00Z: {words}."
    off["agent"]["lending"]["pausedUntil"] = None
    assert cli_text.status(off).splitlines()[0] == f"Lending is off: {words}."


def test_a_switch_that_is_off_is_not_called_a_pause():
    off = copy.deepcopy(STATUS) | {"switchedOff": True}
    off["agent"]["lending"] = {"allowed": False, "pausedUntil": None, "by": "local"}
    for text in (cli_text.status(off), cli_text.why(off)):
        assert text.splitlines()[0].startswith("Lending is off: switched off on this machine through the API")
    off["agent"]["lending"]["by"] = "cluster"
    assert cli_text.why(off).startswith("Lending is off: paused by the cluster.")


def test_why_names_a_resource_that_is_not_known():
    assert "cpu: unknown (first reading)." in cli_text.why(STATUS)
    full = copy.deepcopy(STATUS)
    full["agent"]["resources"][0]["reason"] = "too little"
    assert "ram: not lent (too little)." in cli_text.why(full)
    assert "not lent: too little" in cli_text.status(full)


def test_a_pause_is_confirmed_even_where_something_else_lasts_longer():
    state = {"allowed": False, "pausedUntil": "2026-11-30T12:00:00Z", "by": "schedule"}
    hours = "Lending is off until 2026-11-30T12:00:00Z: outside the hours of its schedule."
    assert cli_text.paused({"lending": state}) == f"Paused. {hours}"
    assert cli_text.resumed({"lending": state}) == f"Not paused any more. {hours}"
    here = {"lending": state | {"by": "local"}}
    assert cli_text.paused(here).startswith(
        "Lending is off until 2026-11-30T12:00:00Z: paused on this machine"
    )
    assert cli_text.resumed({"lending": state | {"allowed": True, "by": None}}) == "Lending is on."


def test_a_resume_that_leaves_the_switch_off_does_not_send_the_owner_back_to_resume():
    told = cli_text.resumed({"lending": {"allowed": False, "by": "local", "pausedUntil": None}})
    assert told.startswith("Not paused any more. Lending is off: switched off on this machine")
    assert "POST /admin/lending" in told
    assert "vacancy resume" not in told


def test_holds_say_how_to_free_them():
    hold = {
        "id": "7",
        "upstream": "llama",
        "borrower": "b",
        "model": None,
        "since": "T",
        "why": "client gone",
    }
    assert "vacancy holds --release ID" in cli_text.holds({"holds": [hold]})
    assert cli_text.holds({"holds": []}) == "Nothing is held."
    assert cli_text.holds({"released": "7"}) == "Released 7."


def test_what_a_terminal_would_obey_is_shown_as_its_escape():
    said = {"work": [{"model": "m\x1b[2J\n\u202etxt.exe \u00e9\x9b", "phase": None, "slots": 3}], "by": "ok"}
    assert cli_text.printable(said) == {
        "work": [{"model": "m\\x1b[2J\\n\\u202etxt.exe \u00e9\\x9b", "phase": None, "slots": 3}],
        "by": "ok",
    }


def test_an_applied_credit_is_shown_with_what_was_charged_instead():
    why = "resident: listed with context 4096, the request asks for it"
    credit = {"credited": True, "model": "m:latest", "why": why, "chargedMiB": 300, "since": "T"}
    upstreams = {"llama": {"residency": credit}, "other": {"residency": {}}}
    line = f"llama: charged 300 MiB for m:latest ({why})."
    assert line in cli_text.status({**STATUS, "upstreams": upstreams}).splitlines()
    credit["model"] = None
    assert "for its model (" in cli_text.status({**STATUS, "upstreams": upstreams})
    assert "charged" not in cli_text.status(STATUS)


@pytest.mark.parametrize(
    ("reclaim", "lines"),
    [
        (None, []),
        (
            {"phase": "waiting", "since": "T"},
            ["llama: the machine is wanted back: its work may end until the deadline (T)."],
        ),
        (
            {"phase": "proceeding", "since": "T", "unload": {"shown": False, "why": "it still lists m"}},
            [
                "llama: its work was taken back (T).",
                "llama: it was asked to unload and has not shown that it let go (it still lists m).",
            ],
        ),
        (
            {"phase": "proceeding", "since": "T", "unload": {"shown": True, "why": "it showed it"}},
            [
                "llama: its work was taken back (T).",
                "llama: it was asked to unload and showed that it let go.",
            ],
        ),
        ({"phase": "later", "since": "T"}, ["llama: later (T)."]),
    ],
)
def test_giving_back_is_said_in_status_and_in_why(reclaim: object, lines: list[str]):
    document = copy.deepcopy(STATUS)
    document["upstreams"] = {"llama": {"residency": {}, "reclaim": reclaim, "server": {}}}
    for render in (cli_text.status, cli_text.why):
        said = [line for line in render(document).splitlines() if "(T)" in line or "unload" in line]
        assert said == lines


def test_a_server_on_the_network_is_said_with_what_to_do():
    document = copy.deepcopy(STATUS)
    told = "llama: its server takes connections from the network, past this agent: bind it to 127.0.0.1."
    for state, shown in (("listens_on_network", True), ("loopback_only", False), ("unknown", False)):
        document["agent"]["upstreams"][0]["listener"] = state
        assert (told in cli_text.status(document)) == (told in cli_text.why(document)) == shown


def test_an_open_debug_window_is_not_forgotten():
    document = {**STATUS, "debugUntil": "2026-11-30T12:00:00Z"}
    assert "\n\nEvery request is logged until 2026-11-30T12:00:00Z.\n" in cli_text.status(document)
    assert "logged" not in cli_text.status({**STATUS, "debugUntil": None})
