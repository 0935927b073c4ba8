"""The definition as a whole: what kubectl shows and explains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vacancy_api.schema_crd import COLUMNS, LONGEST_NAME, lending_host_crd

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = lending_host_crd()["spec"]["versions"][0]
ROOT = VERSION["schema"]["openAPIV3Schema"]


def nodes(node: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    yield where, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{where}.{name}")
    if "items" in node:
        yield from nodes(node["items"], f"{where}[]")


def test_every_field_is_described() -> None:
    lacking = [
        where for where, node in nodes(ROOT) if not where.endswith("[]") and not node.get("description")
    ]
    assert lacking == [".metadata"]  # the API server's own


def test_lists_and_texts_are_bounded() -> None:
    for where, node in nodes(ROOT):
        if node["type"] == "array":
            assert "maxItems" in node, where
        if node["type"] == "string" and where not in {".apiVersion", ".kind"}:
            assert "enum" in node or "maxLength" in node, where


def test_no_field_is_free_form() -> None:
    text = str(ROOT)
    assert "preserve-unknown" not in text
    assert "additionalProperties" not in text


def test_the_columns() -> None:
    plain = [column["name"].upper() for column in COLUMNS if "priority" not in column]
    assert plain == ["READY", "LENDABLE", "REASON", "FREE-VRAM", "MODELS", "ACTIVE", "AGE"]
    wide = [column["name"].upper() for column in COLUMNS if "priority" in column]
    assert wide == ["ADDRESS", "PAUSED-UNTIL", "AGENT", "LAST-SEEN"]


def test_the_columns_show_fields_that_exist() -> None:
    known = {where for where, _ in nodes(ROOT)}
    for column in COLUMNS:
        path = column["jsonPath"]
        if not path.startswith((".metadata.", ".status.conditions[")):
            assert path in known, path


def test_lists_of_named_things_are_maps() -> None:
    keyed = {
        where: node["x-kubernetes-list-map-keys"]
        for where, node in nodes(ROOT)
        if node.get("x-kubernetes-list-type") == "map"
    }
    assert keyed == {
        ".spec.resources": ["name"],
        ".spec.upstreams": ["name"],
        ".spec.upstreams[].models.items": ["name"],
        ".status.conditions": ["type"],
    }


def test_the_longest_name_leaves_room_for_the_objects_named_after_it() -> None:
    assert len("lh-" + "x" * LONGEST_NAME + "-config") == 253


def test_status_is_a_subresource() -> None:
    assert VERSION["subresources"] == {"status": {}}
