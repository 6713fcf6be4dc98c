"""Metrics of a service, for Prometheus."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector

__all__ = ["Metrics"]

_PREDICTIONS = ("/predict", "/v2/models/{name}/infer")
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Metrics:
    """Requests by path and status, seconds of predictions, and predictions in progress."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "visionshare_requests",
            "Requests that were answered.",
            ("path", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "visionshare_request_seconds",
            "Seconds from the request to its answer, of predictions.",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._running = Gauge(
            "visionshare_predictions_running",
            "Predictions that run or wait.",
            multiprocess_mode="livesum",
            registry=self.registry,
        )

    def set_running(self, number: int) -> None:
        """Note how many predictions run or wait in this process."""
        self._running.set(number)

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(path, str(status)).inc()
        if path in _PREDICTIONS:
            self._seconds.observe(seconds)

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """Return the metrics in a format that a client accepts, and its content type."""
        encode, content_type = choose_encoder(accept)
        registry = self.registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)
        return encode(registry), content_type
