"""A classifier as a small web service: predictions, a page to draw on, figures to watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visionshare.apps.service.limits import Limits
from visionshare.errors import ServiceError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from visionshare.classifier import CompactClassifier

__all__ = ["Limits", "require_service", "service"]


def require_service() -> None:
    """See that the packages of the extra ``serve`` are installed.

    Raises
    ------
    ServiceError
        If one is not.
    """
    from importlib.util import find_spec

    missing = [n for n in ("fastapi", "uvicorn", "python_multipart") if find_spec(n) is None]
    if missing:
        raise ServiceError(
            f"{', '.join(missing)}: not installed; the service needs: "
            "pip install 'visionshare[serve]'"
        )


def service(classifier: CompactClassifier, limits: Limits | None = None) -> FastAPI:
    """Return the application of a classifier, for any ASGI server.

    ``POST /predict`` takes a picture (its bytes, or a form with one file) or the pixels of an
    image as JSON; ``GET /`` is a page to draw on; ``GET /health`` and ``GET /metrics`` are for
    machines. A classifier with an exit rule stops early.

    Parameters
    ----------
    classifier : CompactClassifier
    limits : Limits, optional
        What a stranger may ask for.

    Raises
    ------
    ServiceError
        If the packages of the extra ``serve`` are not installed.

    Examples
    --------
    >>> from visionshare import load
    >>> import uvicorn  # doctest: +SKIP
    >>> uvicorn.run(service(load("classifier.safetensors")))  # doctest: +SKIP
    """
    require_service()
    from visionshare.apps.service.application import application

    return application(classifier, limits or Limits())
