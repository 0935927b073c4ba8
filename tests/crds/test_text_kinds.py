"""Every kind of text, at its edges: what the API server takes, the agent takes, and the other way round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from standins.manifests import change, manifest
from vacancy_api.manifest import ManifestInvalid, parse_manifest

if TYPE_CHECKING:
    from lab.kube_client import KubeClient

pytestmark = pytest.mark.kube
HOSTS = "/apis/vacancy.dev/v1alpha1/namespaces/lending/lendinghosts?fieldValidation=Strict&dryRun=All"
UUID = "5c89852c-d268-4dfc-8d9a-7b3d3a9a1b2c"

EDGES: dict[str, str] = {
    "spec.external.address": """192.168.1.20 ::ffff:1.2.3.4 fe80::1 255.255.255.255 0.0.0.0 fd00::1
        2001:db8::1 1.2.3.04 10.0.0.1%eth0 169.254.1.1 ff02::1 :: 1.2.3 ::1.2.3.4 0:0:0:0:0:0:0:1 FD00::A
        240.0.0.1 100.64.0.1""",
    "spec.access.listen": ":: ::ffff:127.0.0.1 127.0.0.1 fe80::1%lo 0 127.1 ::FFFF 1:: 01.2.3.4",
    "spec.pausedUntil": """2030-01-31T18:00:00Z 2030-02-29T18:00:00Z 2032-02-29T18:00:00Z 2030-01-31T24:00:00Z
        2030-01-31T18:00:60Z 2030-01-31t18:00:00z 2030-01-31T18:00:00.1234567Z 2030-01-31T18:00:00.5+14:00
        0000-01-01T00:00:00Z 0001-01-01T00:00:00Z 9999-12-31T23:59:59-23:59 2030-01-31T18:00:00+24:00
        2030-13-31T18:00:00Z 0001-01-01T00:00:00+10:00""",
    "spec.owner.idleAfter": """10m 1s 999ms 1000ms 24h 1440m 86400s 86401s 24h1ms 0h1s 00001s 1000000s 1m1m
        1S \uff11s        86400000ms 999999h 0s +1s 1h30m 1h30m15s500ms 1 1m30""",
    "spec.schedule.timeZone": "UTC Europe/Berlin europe/berlin Etc/GMT+1 /UTC UTC/ US//Eastern",
    "spec.upstreams[0].target": f"""http://h https://h:1 HTTP://h http://H.x-y.z:80 http://-h http://h- http://h.
        http://[::1] http://[::1]:8080 http://[::ffff:1.2.3.4]:80 http://[fe80::1%25eth0]:80 http://1.2.3.4
        http://1.2.3 http://1.2.3.4.5:8 http://01.2.3.4 http://1:80 http://h:0 http://h:00080 http://h:080
        http://a_b:1 http://h: http://[] http://[1.2.3.4]:1 http://[12.3]:1 http://.. http://1..2 http://a..b
        http://1.2.3.4a http://4.a http://{"a" * 293} http://{"a" * 294} http://h? http://h/ http://h#a ftp://h""",
    "spec.resources[0].device": f"""0000:01:00.0 01:00.0 00000000:01:00.7 01:00.8 GPU-{UUID} gpu-{UUID}
        GPU-{UUID[:8]}""",
    "spec.upstreams[0].service": f"a a-b 1a a- a.b A {'a' * 63} {'a' * 64}",
    "spec.upstreams[0].credentialSecretRef.name": f"a.b a..b -a {'a' * 253} {'a' * 254}",
    "spec.upstreams[0].credentialSecretRef.key": "a A_.- .. . a/b",
    "spec.external.wakeOnLan": "00:1a:2b:3c:4d:5e 00-1A:2b-3c-4d-5e 001a2b3c4d5e",
    "spec.schedule.windows[0].from": "00:00 23:59 24:00 1:00 01:60",
    "metadata.name": f"a.b {'a' * 243} {'a' * 244} A -a a_b",
}
OTHER_TEXTS = [
    "",
    " ",
    "a\n",
    "\ta",
    "a\u00a0",
    "\u2003a",
    "\x1fa",
    "a\x85",
    "\u200b",
    "a b",
    "é",
    "a/b",
    "a\\b",
]
TRIMMED = ("spec.owner.processes[0]", "spec.upstreams[0].models.items[0].name")
NUMBERS: dict[str, tuple[Any, ...]] = {
    "spec.upstreams[0].port": (0, 1, 65535, 65536, 8471.5, True),
    "spec.limits.maxRequestBodyMiB": (0, 1, 4096, 4097),
    "spec.resources[0].capacity.minFreeMiB": (-1, 0, 67_108_864, 67_108_865),
    "spec.resources[0].pressure.capPercent": (9, 10, 100, 101),
}
CASES: list[tuple[str, Any]] = [
    *((place, text) for place, texts in EDGES.items() for text in texts.split()),
    *((place, f"{texts.split()[0]}\n") for place, texts in EDGES.items()),
    *((place, text) for place in TRIMMED for text in OTHER_TEXTS),
    *((place, value) for place, values in NUMBERS.items() for value in values),
]


def is_taken(data: dict[str, Any]) -> bool:
    try:
        parse_manifest(data)
    except ManifestInvalid:
        return False
    return True


@pytest.mark.parametrize("place", sorted({place for place, _ in CASES}))
def test_api_server_and_agent_agree(kube: KubeClient, place: str) -> None:
    kube.make_namespace("lending")
    differ = []
    for value in (value for where, value in CASES if where == place):
        data = manifest()
        change(data, place, value)
        answer = kube.request("POST", HOSTS, data)
        assert answer.status in {201, 400, 422}
        assert "evaluation error" not in str(answer.body), value
        if (answer.status == 201) is not is_taken(data):
            differ.append((value, answer.body.get("message", "taken")))
    assert differ == []
