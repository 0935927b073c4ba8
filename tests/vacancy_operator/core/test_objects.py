from __future__ import annotations

import pytest

from standins.operator_world import EPOCH, EXTERNAL, lending_host, service_token
from vacancy_operator.core import objects
from vacancy_operator.core.configuration import Configured, configure
from vacancy_operator.core.facts import JoinAddress
from vacancy_operator.core.kinds import Names
from vacancy_operator.core.tokens import decoded, encoded

HOST = lending_host(**EXTERNAL)
NAMES = Names.of("box")
ADDRESS = JoinAddress("https://10.0.0.1:6443", "CA")


def configured(**spec: object) -> Configured:
    found = configure(lending_host(**spec), {"borrow": "B" * 43, "read": "R" * 43, "admin": "A" * 43})
    assert isinstance(found, Configured)
    return found


def test_everything_belongs_to_its_host() -> None:
    found = objects.skeleton(NAMES.lease, HOST)
    assert found["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "vacancy.dev/v1alpha1",
            "kind": "LendingHost",
            "name": "box",
            "uid": "uid-1",
            "controller": True,
        }
    ]


def test_every_rule_names_its_objects() -> None:
    found = objects.rules(
        "box", NAMES, configured(**EXTERNAL, access={"tls": {"secretRef": {"name": "cert"}}})
    )
    assert {rule["resources"][0]: rule["resourceNames"] for rule in found} == {
        "lendinghosts": ["box"],
        "lendinghosts/status": ["box"],
        "configmaps": ["lh-box-config"],
        "leases": ["lh-box"],
        "secrets": ["cert", "lh-box-join"],
    }
    assert all("*" not in rule["verbs"] and len(rule["resources"]) == 1 for rule in found)


def test_a_host_that_refers_to_no_secret_may_read_none() -> None:
    found = objects.rules("box", NAMES, configured())
    assert all(rule["resources"] != ["secrets"] for rule in found)


def test_the_token_in_a_join_secret_is_kept() -> None:
    live = {"data": encoded({"token": "T", "server": "old"})}
    found = objects.join_secret(HOST, NAMES, ADDRESS, live)
    assert [decoded(found, key) for key in ("token", "server", "ca.crt", "namespace", "name")] == [
        "T",
        ADDRESS.server,
        "CA",
        "lending",
        "box",
    ]
    assert decoded(objects.join_secret(HOST, NAMES, ADDRESS, None), "token") is None


CASES = {
    "none": ("", 0.0, True),
    "right and young": (service_token("a", "s", EPOCH, 900.0), 500.0, False),
    "two thirds through": (service_token("a", "s", EPOCH, 900.0), 600.0, True),
    "of another account": (service_token("b", "s", EPOCH, 900.0), 0.0, True),
    "of another Secret": (service_token("a", "t", EPOCH, 900.0), 0.0, True),
}


@pytest.mark.parametrize("name", CASES)
def test_when_a_token_is_due(name: str) -> None:
    token, seconds, expected = CASES[name]
    join = {"metadata": {"uid": "s"}, "data": encoded({"token": token})}
    assert objects.token_is_due(join, {"metadata": {"uid": "a"}}, EPOCH + seconds) is expected
