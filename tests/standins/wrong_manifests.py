"""Wrong LendingHosts: what is changed in a valid one, and what is said to people.

`config check` and the API server judge the same table: what one refuses the other must refuse too, each in
its own words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from standins.manifests import GPU_A, REMOVE

GPU = "spec.resources[0]"
VLLM = "spec.upstreams[0]"


class Wrong(NamedTuple):
    """One change to the full manifest."""

    place: str
    new: Any
    path: str
    """Where `load_manifest` reports it."""
    ours: str
    """A piece of its message."""
    theirs: str | None
    """A piece of the API server's message. None: it takes the manifest, for a reason given beside it."""


_TABLE: list[tuple[str, Any, str, str, str | None]] = [
    ("apiVersion", "vacancy.dev/v1", "apiVersion", "must be vacancy.dev/v1alpha1", 'unknown field "spec"'),
    ("apiVersion", REMOVE, "apiVersion", "is required", "API version in the data"),
    ("kind", "SharePool", "kind", "must be LendingHost", "must be LendingHost"),
    ("kind", "lendinghost", "kind", "did you mean LendingHost?", "must be LendingHost"),
    ("spce", {}, "spce", "did you mean spec?", 'unknown field "spce"'),
    ("spec", REMOVE, "spec", "is required", "Required"),
    ("spec", [], "spec", "must be a mapping; got a list", "type object"),
    ("metadata", REMOVE, "metadata", "is required", "name or generateName is required"),
    ("metadata.name", REMOVE, "metadata.name", "is required", "name or generateName is required"),
    ("metadata.name", "Gaming_Box", "metadata.name", "DNS subdomain", "RFC 1123 subdomain"),
    ("metadata.name", "a" * 244, "metadata.name", "longer than 243", "longer than 243"),
    ("metadata.namespace", "a.b", "metadata.namespace", "DNS label", "does not match the namespace"),
    ("metadata.labels", {"a/b": True}, "metadata.labels['a/b']", "must be text", "labels of type string"),
    ("metadata.lables", {}, "metadata.lables", "did you mean labels?", 'unknown field "metadata.lables"'),
    ("spec.lending", "yes", "spec.lending", "true or false", "of type boolean"),
    ("spec.external.address", "gaming-box", "spec.external.address", "IP address", "must be an IP address"),
    ("spec.external.address", "127.0.0.1", "spec.external.address", "other machines", "other machines"),
    ("spec.external.wakeOnLan", "00:1a", "spec.external.wakeOnLan", "MAC address", "MAC address"),
    ("spec.external", {}, "spec.external.address", "is required", "Required"),
    ("spec.pausedUntil", "tomorrow", "spec.pausedUntil", "RFC 3339", "RFC 3339"),
    ("spec.pausedUntil", "2030-01-31T18:00:00", "spec.pausedUntil", "with a zone", "with a zone"),
    # which zones there are, the API server is not asked: it may know others than the machine that lends
    ("spec.schedule.timeZone", "Europe/Berln", "spec.schedule.timeZone", "Europe/Berlin?", None),
    (
        "spec.schedule.windows[0].days",
        ["Mo"],
        "spec.schedule.windows[0].days[0]",
        "did you mean Mon?",
        '"Mon", "Tue"',
    ),
    ("spec.schedule.windows[0].days", [], "spec.schedule.windows[0].days", "at least 1", "at least 1"),
    (
        "spec.schedule.windows[0].days",
        ["Mon", "Mon"],
        "spec.schedule.windows[0].days[1]",
        "twice",
        "lists a day twice",
    ),
    ("spec.schedule.windows[0].from", "25:00", "spec.schedule.windows[0].from", "time of day", "time of day"),
    ("spec.schedule.windows[0].to", REMOVE, "spec.schedule.windows[0].to", "is required", "Required"),
    ("spec.owner.presence", "none", "spec.owner.presence", "auto, headless", '"auto", "headless"'),
    ("spec.owner.idleAfter", 600, "spec.owner.idleAfter", "write 600s if", "of type string"),
    ("spec.owner.idleAfter", "10 min", "spec.owner.idleAfter", "such as 30s", "such as 30s"),
    ("spec.owner.idleAfter", "25h", "spec.owner.idleAfter", "between 1s and 24h", "from 1s to 24h"),
    ("spec.owner.processes", ["/usr/bin/steam"], "spec.owner.processes[0]", "write 'steam'", "without path"),
    ("spec.sampling.interval", "0s", "spec.sampling.interval", "between 200ms and 60s", "from 200ms to 60s"),
    (f"{GPU}.name", "GPU", f"{GPU}.name", "DNS label", "DNS label"),
    (f"{GPU}.type", "cuda", f"{GPU}.type", "did you mean nvidia?", '"nvidia", "amd"'),
    (f"{GPU}.device", "0", f"{GPU}.device", "PCI address", "PCI address"),
    (
        f"{GPU}.capacity.maxUtilizationPercent",
        50,
        f"{GPU}.capacity.maxUtilizationPercent",
        "only for cpu",
        "only for cpu",
    ),
    (f"{GPU}.capacity.minFreeMiB", -1, f"{GPU}.capacity.minFreeMiB", "at least 0", "equal to 0"),
    (
        f"{GPU}.capacity.minFreeMib",
        1,
        f"{GPU}.capacity.minFreeMib",
        "did you mean minFreeMiB?",
        'unknown field "spec.resources[0].capacity.minFreeMib"',
    ),
    (
        f"{GPU}.pressure.thresholdPercent",
        REMOVE,
        f"{GPU}.pressure.thresholdPercent",
        "required with mode fixed",
        "required with mode fixed",
    ),
    (f"{GPU}.pressure.mode", "learned", f"{GPU}.pressure.thresholdPercent", "no effect", "mode fixed only"),
    ("spec.resources[1].pressure", {}, "spec.resources[1].pressure", "only for nvidia", "only for nvidia"),
    ("spec.resources[1].memory", "unified", "spec.resources[1].memory", "only for nvidia", "only for nvidia"),
    ("spec.resources[1].name", "cpu", "spec.resources[2].name", "own name", "own name"),
    (
        "spec.resources[1].type",
        "nvidia",
        "spec.resources[1].device",
        "is required where more than one",
        "is required where more than one",
    ),
    (
        "spec.resources[2].capacity.minFreeMiB",
        5,
        "spec.resources[2].capacity.minFreeMiB",
        "not for cpu",
        "not for cpu",
    ),
    (f"{VLLM}.resource", "gpuu", f"{VLLM}.resource", "did you mean 'gpu'?", "no resource is named gpuu"),
    (
        f"{VLLM}.alsoRequires",
        ["disk"],
        f"{VLLM}.alsoRequires[0]",
        "no resource is named 'disk'",
        "is not there",
    ),
    (f"{VLLM}.name", "ollama", "spec.upstreams[1].name", "own name", "own name"),
    (f"{VLLM}.dialect", "vllm", f"{VLLM}.dialect", "did you mean openai?", '"llamacpp", "openai"'),
    (
        f"{VLLM}.target",
        "http://127.0.0.1:8000/v1",
        f"{VLLM}.target",
        "write http://127.0.0.1:8000",
        "remove path",
    ),
    (f"{VLLM}.target", "http://u:p@h:1", f"{VLLM}.target", "credentialSecretRef", "credentialSecretRef"),
    (
        f"{VLLM}.target",
        "127.0.0.1:8000",
        f"{VLLM}.target",
        "must start with http://",
        "http://127.0.0.1:11434",
    ),
    (f"{VLLM}.target", "http://localhost:8472", f"{VLLM}.target", "the agent's own", "the agent itself"),
    (f"{VLLM}.port", 8472, "spec.upstreams[1].port", "choose another", "choose another"),
    (f"{VLLM}.port", 8470, f"{VLLM}.port", "apiPort", "apiPort"),
    (f"{VLLM}.port", "8471", f"{VLLM}.port", "without quotes", "of type integer"),
    (f"{VLLM}.port", 0, f"{VLLM}.port", "at least 1", "equal to 1"),
    (
        f"{VLLM}.yieldOnVeto",
        True,
        f"{VLLM}.yieldOnVeto",
        "cannot be asked to unload",
        "cannot be asked to unload",
    ),
    (f"{VLLM}.forwardAuthorization", True, f"{VLLM}.forwardAuthorization", "contradicts", "contradicts"),
    (
        "spec.upstreams[1].priorityScheduling",
        True,
        "spec.upstreams[1].priorityScheduling",
        "only for vLLM",
        "only for vLLM",
    ),
    (f"{VLLM}.drainTimeout", "2h", f"{VLLM}.drainTimeout", "between 0s and 1h", "from 0s to 1h"),
    (f"{VLLM}.slots", 0, f"{VLLM}.slots", "at least 1", "equal to 1"),
    (f"{VLLM}.service", "LLM", f"{VLLM}.service", "Service name", "Service name"),
    (
        f"{VLLM}.credentialSecretRef",
        "key",
        f"{VLLM}.credentialSecretRef",
        "must be a mapping",
        "of type object",
    ),
    (f"{VLLM}.models.items[0].name", " ", f"{VLLM}.models.items[0].name", "blank", "blank"),
    (
        f"{VLLM}.models.items[0].residentMinFreeMiB",
        7000,
        f"{VLLM}.models.items[0].residentMinFreeMiB",
        "is more",
        "is more",
    ),
    (
        f"{VLLM}.residentMinFreeMiB",
        1,
        f"{VLLM}.residentMinFreeMiB",
        "it belongs to spec.upstreams[].models",
        'unknown field "spec.upstreams[0].residentMinFreeMiB"',
    ),
    ("spec.access.listen", "localhost", "spec.access.listen", "IP address", "IP address"),
    ("spec.access.tls", {}, "spec.access.tls.secretRef", "is required", "Required"),
    (
        "spec.limits.maxBufferedBodyMiB",
        1,
        "spec.limits.maxBufferedBodyMiB",
        "less than maxRequestBodyMiB (32)",
        "less than maxRequestBodyMiB",
    ),
    (
        "spec.limits.headerReadTimeout",
        "0s",
        "spec.limits.headerReadTimeout",
        "between 1s and 1h",
        "from 1s to 1h",
    ),
    ("spec.pausedUntil", "2030-02-30T00:00:00Z", "spec.pausedUntil", "RFC 3339", "RFC 3339"),
    ("spec.pausedUntil", "2030-01-31T18:00:00+25:00", "spec.pausedUntil", "RFC 3339", "RFC 3339"),
    ("spec.external.address", "224.0.0.1", "spec.external.address", "other machines", "other machines"),
    ("spec.external.address", "fe80::1", "spec.external.address", "other machines", "other machines"),
    ("spec.external.address", "::ffff:10.0.0.1", "spec.external.address", "write 10.0.0.1", "other machines"),
    ("spec.owner.idleAfter", "", "spec.owner.idleAfter", "such as 30s", "such as 30s"),
    ("spec.owner.idleAfter", "1.5h", "spec.owner.idleAfter", "such as 30s", "such as 30s"),
    ("spec.owner.idleAfter", "30s1h", "spec.owner.idleAfter", "such as 30s", "such as 30s"),
    ("spec.owner.idleAfter", "10m\n", "spec.owner.idleAfter", "such as 30s", "such as 30s"),
    ("spec.owner.processes", [" steam"], "spec.owner.processes[0]", "blanks", "blanks"),
    (
        "spec.owner.processes",
        ["C:\\steam.exe"],
        "spec.owner.processes[0]",
        "write 'steam.exe'",
        "without path",
    ),
    (
        f"{VLLM}.target",
        "http://127.0.0.256:80",
        f"{VLLM}.target",
        "valid IP address",
        "http(s)://HOST[:PORT]",
    ),
    (f"{VLLM}.target", "http://[::x]:80", f"{VLLM}.target", "http(s)://HOST[:PORT]", "http(s)://HOST[:PORT]"),
    (f"{VLLM}.target", "http://[1::2::3]:80", f"{VLLM}.target", "valid IP address", "http(s)://HOST[:PORT]"),
    (f"{VLLM}.target", "http://h:65536", f"{VLLM}.target", "from 1 to 65535", "from 1 to 65535"),
    (f"{VLLM}.target", "http://127.0.0.1:8470", f"{VLLM}.target", "the agent's own", "the agent itself"),
    (f"{VLLM}.alsoRequires", ["gpu"], f"{VLLM}.alsoRequires[0]", "already the", "own resource: remove it"),
    (f"{VLLM}.alsoRequires", ["ram", "ram"], f"{VLLM}.alsoRequires[1]", "twice", "lists a resource twice"),
    (
        f"{VLLM}.models.items",
        [{"name": "m"}, {"name": "m"}],
        f"{VLLM}.models.items[1].name",
        "is listed twice",
        'Duplicate value: {"name":"m"}',
    ),
    (
        f"{VLLM}.models.default.residentMinFreeMiB",
        8001,
        f"{VLLM}.models.default.residentMinFreeMiB",
        "is more",
        "is more than minFreeMiB",
    ),
    (
        "spec.resources[1]",
        {"name": "ram", "type": "nvidia", "device": GPU_A.upper().replace("GPU-", "GPU-")},
        "spec.resources[1].device",
        "declare each GPU once",
        "declare each GPU once",
    ),
    ("spec.access.apiPort", 8472, "spec.upstreams[1].port", "apiPort", "apiPort"),
]
WRONG = [Wrong(*case) for case in _TABLE]
