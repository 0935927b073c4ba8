"""How many bytes of request bodies a proxy holds at once."""

from __future__ import annotations


class Budget:
    """A sum that is never passed. One loop owns it, hence no lock."""

    __slots__ = ("refused", "total", "used")

    def __init__(self, total: int) -> None:
        self.total = total
        """Bytes that may be held; a new limit may be written here, also one below `used`."""
        self.used = 0
        self.refused = 0
        """Reservations refused so far."""

    def reserve(self, n: int, /) -> bool:
        """Take `n` bytes, or return False and take none."""
        if self.used + n > self.total:
            self.refused += 1
            return False
        self.used += n
        return True

    def release(self, n: int, /) -> None:
        """Give `n` reserved bytes back.

        Raises:
            ValueError: More than is reserved: a double release, which would let bodies pass the limit.
        """
        if n > self.used:
            msg = f"{n} bytes released of {self.used} reserved"
            raise ValueError(msg)
        self.used -= n
