"""What a stranger may ask of the service."""

from __future__ import annotations

from dataclasses import dataclass

from visionshare.errors import InputError

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """What a stranger may ask of the service.

    Parameters
    ----------
    body : int, default 10 MiB
        Bytes of a request's body.
    pixels : int, default 2**25
        Pixels of a picture, read from its header before it is decoded.
    threads : int, default 2
        Pictures that are decoded and classified at once.
    waiting : int, default 64
        Pictures that may wait for a thread; more are refused with 503.
    seconds : float, default 30
        For a body to arrive.

    Raises
    ------
    InputError
        If a limit is not above 0.
    """

    body: int = 10 << 20
    pixels: int = 1 << 25
    threads: int = 2
    waiting: int = 64
    seconds: float = 30.0

    def __post_init__(self) -> None:
        for name in ("body", "pixels", "threads", "waiting"):
            given = getattr(self, name)
            if type(given) is not int or given < 1:
                raise InputError(name, given, "a whole number of at least 1")
        if not 0 < self.seconds < float("inf"):
            raise InputError("seconds", self.seconds, "a number above 0")
