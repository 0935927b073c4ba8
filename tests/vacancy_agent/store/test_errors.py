from __future__ import annotations

import errno
from pathlib import Path

from vacancy_agent.store.errors import InUseError, StoreError


def test_says_what_was_tried_where_and_what_to_do():
    error = StoreError.of("write", Path("/state/x"), OSError(errno.ENOSPC, "No space left on device"))
    assert str(error) == "cannot write /state/x: No space left on device (the disk is full: free some space)"


def test_an_error_without_a_known_remedy_is_said_as_it_is():
    assert (
        str(StoreError.of("read", Path("/x"), OSError(errno.EIO, "I/O error"))) == "cannot read /x: I/O error"
    )
    assert issubclass(InUseError, StoreError)
