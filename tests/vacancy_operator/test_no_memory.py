from __future__ import annotations

from typing import Any, cast

import kopf

from vacancy_operator.no_memory import NoDiff, NoProgress

BODY = cast("kopf.Body", {"metadata": {"name": "box"}, "spec": {"a": 1}})


def test_nothing_is_written_and_nothing_is_read() -> None:
    patch = kopf.Patch()
    progress, diff = NoProgress(), NoDiff()
    progress.store(key="k", record=cast("Any", {}), body=BODY, patch=patch)
    progress.touch(body=BODY, patch=patch, value="now")
    progress.purge(key="k", body=BODY, patch=patch)
    diff.store(body=BODY, patch=patch, essence=diff.build(body=BODY))
    assert dict(patch) == {}
    assert progress.fetch(key="k", body=BODY) is None
    assert diff.fetch(body=BODY) is None


def test_every_object_looks_the_same() -> None:
    essence = NoDiff().build(body=BODY)
    assert NoProgress().clear(essence=essence) == {}
