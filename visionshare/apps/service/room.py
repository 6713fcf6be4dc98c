"""Room for connections: their number is limited, and the one that waits longest gives way."""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

from visionshare.apps.service.limits import Limits

__all__ = ["Occupant", "Room", "Stage"]


class Stage(IntEnum):
    """What a connection is doing; where room is needed, the lowest stage is closed first.

    Examples
    --------
    >>> min(Stage)
    <Stage.CLOSING: 0>
    """

    CLOSING = 0
    WAITING = 1
    RECEIVING = 2
    ANSWERING = 3


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
    >>> room.enter(Door()), room.enter(Door())
    closed
    (True, True)
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        # Each stage has its connections in the order in which they came to it.
        self._stages: dict[Stage, dict[Occupant, None]] = {stage: {} for stage in Stage}

    def __len__(self) -> int:
        return sum(map(len, self._stages.values()))

    def enter(self, occupant: Occupant) -> bool:
        """Take a connection in that waits for a request; close another where one must go.

        Returns
        -------
        bool
            Whether it is taken in. Beyond ``max_connections``, see :meth:`is_full`, the
            ``health_reserve`` is left.
        """
        if len(self) >= self.limits.max_connections and not self._displace():
            most = self.limits.max_connections + self.limits.health_reserve
            if len(self) >= most:
                return False
        self._stages[Stage.WAITING][occupant] = None
        return True

    @property
    def is_full(self) -> bool:
        """Whether more than ``max_connections`` are in: all the others are being answered."""
        return len(self) > self.limits.max_connections

    def move(self, occupant: Occupant, before: Stage, stage: Stage) -> None:
        """Note that a connection came to another stage; nothing where it is not in."""
        if occupant in self._stages[before]:
            del self._stages[before][occupant]
            self._stages[stage][occupant] = None

    def leave(self, occupant: Occupant, stage: Stage) -> None:
        """Forget a connection."""
        self._stages[stage].pop(occupant, None)

    def _displace(self) -> bool:
        """Close the connection that has waited longest, and return whether there is one."""
        for stage in (Stage.CLOSING, Stage.WAITING, Stage.RECEIVING):
            for oldest in self._stages[stage]:
                self.leave(oldest, stage)
                oldest.displace()
                return True
        return False
