"""Room for connections: their number is limited, and the one that waits longest gives way."""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

from visionshare.apps.service.limits import Limits

__all__ = ["Occupant", "Room", "Stage"]


class Stage(IntEnum):
    """What a connection is doing; where room is needed, the lowest stage is closed first.

    One that is arriving or being answered is not closed.

    Examples
    --------
    >>> min(Stage)
    <Stage.CLOSING: 0>
    """

    CLOSING = 0
    WAITING = 1
    RECEIVING = 2
    # Its first bytes are about to be read, within a few turns of the event loop.
    ARRIVING = 3
    ANSWERING = 4


_DISPLACED = (Stage.CLOSING, Stage.WAITING, Stage.RECEIVING)


class Occupant(Protocol):
    """A connection that can be closed for want of room."""

    def displace(self) -> None:
        """Close the connection at once; the room has forgotten it."""


class Room:
    """The connections of one server.

    Parameters
    ----------
    limits : Limits

    Examples
    --------
    >>> class Door:
    ...     def displace(self):
    ...         print("closed")
    >>> room = Room(Limits(max_connections=1))
    >>> first, second = Door(), Door()
    >>> room.enter(first)
    True
    >>> room.move(first, Stage.WAITING)
    >>> room.enter(second)
    closed
    True
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        # Each stage has its connections in the order in which they came to it.
        self._stages: dict[Stage, dict[Occupant, None]] = {stage: {} for stage in Stage}

    def __len__(self) -> int:
        return sum(map(len, self._stages.values()))

    def enter(self, occupant: Occupant) -> bool:
        """Take an arriving connection in; close another where one must go.

        Returns
        -------
        bool
            Whether it is taken in. Beyond ``max_connections``, see :meth:`is_full`, the
            ``health_reserve`` is left.
        """
        if self._has_no_space and not self._displace():
            most = self.limits.max_connections + self.limits.health_reserve
            if len(self) >= most:
                return False
        self._stages[Stage.ARRIVING][occupant] = None
        return True

    @property
    def must_wait(self) -> bool:
        """Whether a new connection had better come when those that arrive are read.

        None can be closed for it now, and one of those that arrive may turn out to wait.
        """
        return (
            self._has_no_space
            and bool(self._stages[Stage.ARRIVING])
            and not any(self._stages[stage] for stage in _DISPLACED)
        )

    @property
    def is_full(self) -> bool:
        """Whether more than ``max_connections`` are in: all the others are being answered."""
        return len(self) > self.limits.max_connections

    def move(self, occupant: Occupant, stage: Stage) -> None:
        """Note that a connection came to another stage; nothing where it is not in."""
        if self.leave(occupant):
            self._stages[stage][occupant] = None

    def leave(self, occupant: Occupant) -> bool:
        """Forget a connection, and return whether it was in."""
        for occupants in self._stages.values():
            if occupant in occupants:
                del occupants[occupant]
                return True
        return False

    @property
    def _has_no_space(self) -> bool:
        return len(self) >= self.limits.max_connections

    def _displace(self) -> bool:
        """Close the connection that has waited longest, and return whether there is one."""
        for stage in _DISPLACED:
            for oldest in self._stages[stage]:
                self.leave(oldest)
                oldest.displace()
                return True
        return False
