"""The committed definitions are what the models say."""

from __future__ import annotations

import yaml

import gen_crds
from vacancy_api.schema_crd import lending_host_crd


def test_committed_files_are_what_the_models_say() -> None:
    lines = gen_crds.differences()
    assert not lines, "run hack/gen_crds.py and commit the result:\n" + "\n".join(lines[:40])


def test_no_other_definition_lies_about() -> None:
    assert set((gen_crds.ROOT / "crds").glob("*.yaml")) == set(gen_crds.rendered())


def test_the_file_says_what_the_definition_says() -> None:
    (text,) = gen_crds.rendered().values()
    assert yaml.safe_load(text) == lending_host_crd()
