"""Limits of what a client may ask of the service."""

from __future__ import annotations

from dataclasses import dataclass, fields

from visionshare.errors import InputError

__all__ = ["Limits"]

_DAY = 86_400


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
    max_body_memory : int, default 64 MiB
        Bytes of all bodies in memory together, arriving or waiting; one of the largest size may
        always be. Beyond it the body that began to arrive first is refused with status 503.
    max_decoded_pixels : int, default 2**22
        Larger pictures are decoded at a reduced size.
    max_decode_memory : int, default 128 MiB
        Bytes for decoding one picture, computed from its header; larger ones are refused.
    max_bodies : int, default 1024
        Bodies that may be arriving at once. Beyond it the one that began first is refused with
        status 503.
    max_connections : int, default 4096
        Connections; further ones wait until one of these ends.
    max_header_size : int, default 16 KiB
        Bytes of a request's line and headers, at least 8 KiB.
    header_timeout : float, default 10
        Seconds for a request's headers to arrive, from the start of the connection or the end of
        the answer before.
    end_timeout : float, default 10
        Seconds for requests in progress when the service ends.

    Raises
    ------
    InputError
        If a limit is not above 0, or ``max_header_size`` below 8 KiB.

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
    max_body_memory: int = 64 << 20
    max_decoded_pixels: int = 1 << 22
    max_decode_memory: int = 128 << 20
    max_bodies: int = 1024
    max_connections: int = 4096
    max_header_size: int = 16 << 10
    header_timeout: float = 10.0
    end_timeout: float = 10.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_timeout"):
                if not 0 < value <= _DAY:
                    accepted = f"a number of seconds above 0, {_DAY} at most"
                    raise InputError(field.name, value, accepted)
                continue
            # The server's buffer has no less.
            least = 8 << 10 if field.name == "max_header_size" else 1
            if type(value) is not int or value < least:
                raise InputError(field.name, value, f"an integer of at least {least}")
