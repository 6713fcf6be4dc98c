"""Limits of what a client may ask of the service."""

from __future__ import annotations

from dataclasses import dataclass

from visionshare.errors import InputError

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Limits of what a client may ask of the service.

    Parameters
    ----------
    max_body_size : int, default 10 MiB
        Bytes of a request's body.
    max_pixels : int, default 2**25
        Pixels of a picture, read from its header before it is decoded.
    threads : int, default 2
        Pictures that are decoded and classified at once.
    max_queue : int, default 64
        Pictures that may wait for a thread; further ones are refused with status 503.
    body_timeout : float, default 30
        Seconds for a body to arrive.

    Raises
    ------
    InputError
        If a limit is not above 0.

    Examples
    --------
    >>> Limits(max_body_size=1 << 20).max_queue
    64
    """

    max_body_size: int = 10 << 20
    max_pixels: int = 1 << 25
    threads: int = 2
    max_queue: int = 64
    body_timeout: float = 30.0

    def __post_init__(self) -> None:
        for name in ("max_body_size", "max_pixels", "threads", "max_queue"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InputError(name, value, "an integer of at least 1")
        if not 0 < self.body_timeout < float("inf"):
            raise InputError("body_timeout", self.body_timeout, "a number of seconds above 0")
