"""The CustomResourceDefinition of LendingHost, whole, as plain data."""

from __future__ import annotations

from typing import Any

from vacancy_api.lending_host import API_VERSION, KIND, LendingHost, LendingHostSpec
from vacancy_api.schema import structural
from vacancy_api.status import LendingHostStatus

GROUP, _, VERSION = API_VERSION.partition("/")
PLURAL = "lendinghosts"
LONGEST_NAME = 243
"""`lh-NAME-config` must still be a legal name."""


def _column(name: str, path: str, kind: str = "string", *, wide: bool = False, says: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "jsonPath": path,
        "description": says,
        **({"priority": 1} if wide else {}),
    }


def _condition(kind: str, part: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{part}'


_SUMMARY = ".status.agent.summary"
COLUMNS = (
    _column("Ready", _condition("Ready", "status"), says="The agent runs this configuration."),
    _column("Lendable", _condition("Lendable", "status"), says="A request would be admitted now."),
    _column("Reason", _condition("Lendable", "reason"), says="Why nothing would be admitted."),
    _column("Free-VRAM", f"{_SUMMARY}.freeVRAM", says="Free memory of all GPUs."),
    _column("Models", f"{_SUMMARY}.models", says="Models that are loaded."),
    _column("Active", f"{_SUMMARY}.active", "integer", says="Jobs that run or are held."),
    _column("Age", ".metadata.creationTimestamp", "date", says="Age of the object."),
    _column("Address", ".status.agent.address", wide=True, says="Address that borrowers reach."),
    # `string`: a `date` column shows a time to come as <invalid>
    _column(
        "Paused-Until", ".status.agent.lending.pausedUntil", wide=True, says="When the pause of lending ends."
    ),
    _column("Agent", ".status.agent.version", wide=True, says="Version of the agent."),
    _column("Last-Seen", ".status.lastSeen", "date", wide=True, says="Last sign of a lost agent."),
)


def lending_host_crd() -> dict[str, Any]:
    """The definition that `hack/gen_crds.py` writes.

    Raises:
        SchemaError: A model says what a custom resource cannot.
    """
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["lh"],
                "categories": ["lending"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [dict(column) for column in COLUMNS],
                    "schema": {"openAPIV3Schema": _root()},
                }
            ],
        },
    }


def _root() -> dict[str, Any]:
    described = {name: field.description for name, field in LendingHost.model_fields.items()}
    return {
        "type": "object",
        "description": LendingHost.__doc__.partition(".")[0] + "." if LendingHost.__doc__ else "",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": described["api_version"]},
            "kind": {"type": "string", "description": described["kind"]},
            "metadata": {"type": "object"},
            "spec": {**structural(LendingHostSpec), "description": described["spec"]},
            "status": structural(LendingHostStatus),
        },
        "x-kubernetes-validations": [
            {
                "rule": f"size(self.metadata.name) <= {LONGEST_NAME}",
                "message": f"metadata.name is longer than {LONGEST_NAME} characters: choose a shorter one",
            }
        ],
    }
