"""A classifier as a small web service: predictions, explanations, a page, metrics."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from visionshare.errors import InputError, ServiceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fastapi import FastAPI

    from visionshare.classifier import CompactClassifier

__all__ = ["Limits", "require_service", "service"]

_PACKAGES = ("fastapi", "granian", "python_multipart", "prometheus_client")
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


def require_service() -> None:
    """Check that the packages of the extra ``serve`` are installed.

    Raises
    ------
    ServiceError
        If one is not.

    Examples
    --------
    >>> require_service()
    """
    from importlib.util import find_spec

    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise ServiceError(
            f"{', '.join(missing)}: not installed; the service needs: "
            "pip install 'visionshare[serve]'"
        )


def service(
    classifier: CompactClassifier,
    limits: Limits | None = None,
    *,
    name: str = "classifier",
    host_names: Sequence[str] = ("*",),
    token: str | None = None,
    meter: Path | None = None,
    card: Path | None = None,
    examples: Sequence[Path] = (),
) -> FastAPI:
    """Return the application of a classifier, for any ASGI server.

    ``POST /predict`` takes a picture (its bytes, or a form with one file) or the pixels of an
    image as JSON; ``POST /explain`` takes the same and says which features spoke for a class, and
    where; ``GET /`` is a page that takes pictures; ``GET /health`` and ``GET /metrics`` are for
    machines. A classifier with an exit rule stops early.

    Parameters
    ----------
    classifier : CompactClassifier
    limits : Limits, optional
        What a client may ask for.
    name : str, default "classifier"
        Of the model, in ``/health`` and its card.
    host_names : sequence of str, default ("*",)
        Names of the host that requests may carry; ``"*"`` is any.
    token : str, optional
        Without ``Authorization: Bearer TOKEN`` only the page and ``/health`` are answered.
    meter : path, optional
        TOML file of a meter, whose frames ``POST /meter`` reads.
    card : path, optional
        Model card that the page shows; written from the classifier when omitted.
    examples : sequence of paths, default ()
        Pictures that the page offers.

    Raises
    ------
    ServiceError
        If the packages of the extra ``serve`` are not installed.

    Examples
    --------
    >>> from granian.server.embed import Server
    >>> from visionshare import load
    >>> app = service(load("classifier.safetensors"))  # doctest: +SKIP
    >>> await Server(app, interface="asgi").serve()  # doctest: +SKIP
    """
    require_service()
    from visionshare.service.application import Shown, application
    from visionshare.service.worker import Worker

    worker = Worker(classifier, limits or Limits())
    reader = None
    if meter is not None:
        from visionshare.reading import MeterReader

        reader = MeterReader(meter)
    return application(worker, name, host_names, token, reader, Shown(card, tuple(examples)))
