"""A classifier as a small web service: predictions, explanations, a page, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visionshare.errors import ServiceError
from visionshare.service.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import FastAPI

    from visionshare.classifier import CompactClassifier
    from visionshare.service.worker import Reader

__all__ = ["Limits", "require_service", "service"]

_PACKAGES = ("fastapi", "granian", "python_multipart", "prometheus_client")


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
    reader: Reader | None = None,
    *,
    name: str = "classifier",
    host_names: Sequence[str] = ("*",),
    token: str | None = None,
) -> FastAPI:
    """Return the application of a classifier, for any ASGI server.

    ``POST /predict`` takes a picture (its bytes, or a form with one file) or the pixels of an
    image as JSON; ``POST /explain`` takes the same and says which features spoke for a class, and
    where; ``/v2`` is the Open Inference Protocol; ``GET /`` is a page that takes pictures;
    ``GET /health`` and ``GET /metrics`` are for machines. A classifier with an exit rule stops
    early.

    Parameters
    ----------
    classifier : CompactClassifier
    limits : Limits, optional
        What a client may ask for.
    reader : callable, optional
        Makes an image of a classifier, an opened picture (see
        :class:`visionshare.datasets.opening.OpenedPicture`) and the most pixels it may have;
        :func:`visionshare.batch.pictures.read_picture` when omitted.
    name : str, default "classifier"
        Of the model, in the Open Inference Protocol.
    host_names : sequence of str, default ("*",)
        Names of the host that requests may carry; ``"*"`` is any.
    token : str, optional
        Without ``Authorization: Bearer TOKEN`` only the page and ``/health`` are answered.

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
    from visionshare.batch.pictures import read_picture
    from visionshare.service.application import application
    from visionshare.service.worker import Worker

    worker = Worker(classifier, limits or Limits(), reader or read_picture)
    return application(worker, name, host_names, token)
