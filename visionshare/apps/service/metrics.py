"""Figures of a service in Prometheus' text format, version 0.0.4."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

__all__ = ["METRICS_TYPE", "Metrics"]

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Metrics:
    """Counts requests by path and status, and the seconds of predictions.

    Used by one thread, the event loop's.

    Examples
    --------
    >>> held = Metrics()
    >>> held.count("/predict", 200, 0.004)
    >>> print(*held.text().splitlines()[2:5], sep="\\n")
    visionshare_requests_total{path="/predict",status="200"} 1
    # HELP visionshare_request_seconds Seconds from the request to its answer, of predictions.
    # TYPE visionshare_request_seconds histogram
    """

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets = [0] * (len(_BOUNDS) + 1)
        self._seconds = 0.0
        self.running = 0

    def count(self, path: str, status: int, seconds: float) -> None:
        """Note a request that was answered."""
        self._requests[path, status] += 1
        if path == "/predict":
            self._buckets[bisect_left(_BOUNDS, seconds)] += 1
            self._seconds += seconds

    def text(self) -> str:
        """Return the figures."""
        lines = [
            "# HELP visionshare_requests_total Requests that were answered.",
            "# TYPE visionshare_requests_total counter",
        ]
        for (path, status), n in sorted(self._requests.items()):
            lines.append(f'visionshare_requests_total{{path="{path}",status="{status}"}} {n}')
        name, total = "visionshare_request_seconds", 0
        lines += [
            f"# HELP {name} Seconds from the request to its answer, of predictions.",
            f"# TYPE {name} histogram",
        ]
        for bound, n in zip((*map(str, _BOUNDS), "+Inf"), self._buckets, strict=True):
            total += n
            lines.append(f'{name}_bucket{{le="{bound}"}} {total}')
        lines += [f"{name}_sum {self._seconds:.6f}", f"{name}_count {total}"]
        lines += [
            "# HELP visionshare_predictions_running Predictions that run or wait.",
            "# TYPE visionshare_predictions_running gauge",
            f"visionshare_predictions_running {self.running}",
        ]
        return "\n".join(lines) + "\n"
