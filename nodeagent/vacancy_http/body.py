"""A request body that was collected whole.

Up to 1 MiB it is one bytes object. A larger one lies in a mapped memory file: a helper process can read the
same pages, nothing of it is copied when it grows, and its memory goes back to the system at `close` (a freed
64 MiB bytes object may stay with the allocator). Where there is no memfd, an unlinked temporary file takes
its place.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from typing import BinaryIO, Self, cast

FILE_ABOVE = 1 << 20  # bytes

_Octets = bytes  # inside `Body`, the name `bytes` is its property


class Body:
    """A complete body.

    Attributes:
        small: the body as one object, where it is one and not closed.
    """

    __slots__ = ("_file", "_length", "_map", "small")

    def __init__(self, data: _Octets) -> None:
        self.small: _Octets | None = data
        self._length = len(data)
        self._file: BinaryIO | None = None
        self._map: mmap.mmap | None = None

    @classmethod
    def of_file(cls, file: BinaryIO, length: int) -> Self:
        """A body of the `length` bytes (more than none) that are in `file`, which it owns from now on."""
        body = cls(b"")
        body.small = None
        body._length = length
        body._file = file
        body._map = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ)
        return body

    def __len__(self) -> int:
        return self._length

    @property
    def bytes(self) -> _Octets:
        """The whole body as one object; of a mapped body this is a copy, made at each call.

        Raises:
            ValueError: it is closed.
        """
        if self.small is not None:
            return self.small
        if self._map is None:
            raise ValueError("the body is closed")
        return self._map[:]

    def view(self) -> memoryview:
        """The whole body without a copy.

        Raises:
            ValueError: it is closed.
        """
        if self.small is not None:
            return memoryview(self.small)
        if self._map is None:
            raise ValueError("the body is closed")
        return memoryview(self._map)

    def fileno(self) -> int | None:
        """The descriptor of the memory file, for a helper process; None for a body that is a bytes object."""
        return None if self._file is None else self._file.fileno()

    def grown(self, length: int) -> None:
        """Whoever has the descriptor made the file `length` bytes long: from now on, that is the body.

        A body that is closed stays so.

        Raises:
            ValueError: it is shorter than it was; views of it would point behind its end.
        """
        if self._file is None or self._map is None:
            return
        if length < self._length:
            raise ValueError("a body does not get shorter")
        before = self._map
        self._map = mmap.mmap(self._file.fileno(), length, access=mmap.ACCESS_READ)
        self._length = length
        with contextlib.suppress(BufferError):  # somebody still has a view
            before.close()

    def overwrite(self, at: int, data: _Octets) -> None:
        """Replace as many bytes from `at` on by `data`; of a body that is closed nothing.

        Raises:
            ValueError: that is not inside of it.
        """
        if not 0 <= at <= self._length - len(data):
            raise ValueError("outside of the body")
        if self.small is not None:
            self.small = self.small[:at] + data + self.small[at + len(data) :]
        elif self._file is not None:
            self._file.seek(at)
            write_all(self._file, data)

    def close(self) -> None:
        """Give the memory back; what still has a view keeps it until that view is gone."""
        self.small = None
        if self._map is not None:
            with contextlib.suppress(
                BufferError
            ):  # a transport still holds a slice; the mapping goes with it
                self._map.close()
            self._map = None
        if self._file is not None:
            self._file.close()
            self._file = None


class BodySink:
    """Where the bytes of a body go as they come."""

    __slots__ = ("_buffer", "_file", "length")

    def __init__(self, expected: int) -> None:
        """`expected` is the length of the body, 0 if it is not known."""
        self.length = 0
        self._buffer = bytearray()
        self._file: BinaryIO | None = anonymous_file() if expected > FILE_ABOVE else None

    def write(self, data: bytes) -> None:
        """Append `data`."""
        self.length += len(data)
        if self._file is None:
            self._buffer += data
            if self.length <= FILE_ABOVE:
                return
            self._file = anonymous_file()
            data = bytes(self._buffer)
            self._buffer = bytearray()
        write_all(self._file, data)

    def finish(self) -> Body:
        """The complete body; the sink is empty from now on."""
        file, self._file = self._file, None
        if file is None:
            return Body(bytes(self._buffer))
        return Body.of_file(file, self.length)

    def discard(self) -> None:
        """Give everything back; for a body that nobody wants any more."""
        self._buffer = bytearray()
        if self._file is not None:
            self._file.close()
            self._file = None


def anonymous_file() -> BinaryIO:
    """A file without a name, in memory where the system has that, unbuffered."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("vacancy-body"), "w+b", buffering=0)
    return cast("BinaryIO", tempfile.TemporaryFile(buffering=0))


def write_all(file: BinaryIO, data: bytes) -> None:
    """Write all of `data` to the unbuffered `file`, which may take less than it is given."""
    done = file.write(data)
    while done < len(data):
        done += file.write(data[done:])
