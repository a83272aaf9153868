"""What a service counts about itself, for Prometheus: how many, how long, how full. Nothing about anybody.

When a counter was made is not told either (`..._created`): of requests that is the moment in which the first of them was answered.

Where several processes serve, each writes its numbers to a folder that `PROMETHEUS_MULTIPROC_DIR` names, and any of them adds them up.
"""

import os
from collections import Counter as Tally
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from discreet.collect._store import Verdict

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
MEDIA_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_TOGETHER = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)


class _UndatedRegistry(CollectorRegistry):
    """Numbers without the moments in which they began to be counted."""

    def collect(self) -> Iterable[Metric]:
        """All of them."""
        for metric in super().collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


class Metrics:
    """The numbers of one service."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        self._registry = _UndatedRegistry()
        self._requests = Counter(
            "discreet_requests", "Requests by path and status.", ["path", "status"], registry=self._registry
        )
        self._answers: dict[tuple[str, int], Counter] = {}
        self._samples = Counter(
            "discreet_samples", "Samples by what became of them.", ["verdict"], registry=self._registry
        )
        self._by_verdict = {verdict: self._samples.labels(verdict.value) for verdict in Verdict}
        self._together = Histogram(
            "discreet_transaction_samples", "Samples in one transaction.", buckets=_TOGETHER, registry=self._registry
        )
        self._estimate = Histogram(
            "discreet_estimate_seconds", "Time to compute an estimate.", buckets=_SECONDS, registry=self._registry
        )
        self._bugs = Counter(
            "discreet_bugs", "Requests that failed by a fault of the service.", registry=self._registry
        )
        queue = Gauge(
            "discreet_waiting_samples",
            "Samples that wait to be written.",
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        if METRICS_FOLDER not in os.environ:
            queue.set_function(waiting)  # of several processes none can ask the others
            ProcessCollector(registry=self._registry)

    def count_answer(self, path: str, status: int) -> None:
        """A request was answered. `path`: one of ours."""
        known = self._answers.get((path, status))
        if known is None:
            known = self._answers[path, status] = self._requests.labels(path, str(status))
        known.inc()

    def count_transaction(self, verdicts: list[Verdict]) -> None:
        """A transaction is on disk."""
        self._together.observe(len(verdicts))
        for verdict, many in Tally(verdicts).items():
            self._by_verdict[verdict].inc(many)

    def observe_estimate(self, seconds: float) -> None:
        """An estimate was computed."""
        self._estimate.observe(seconds)

    def count_failure(self) -> None:
        """A bug was met."""
        self._bugs.inc()

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        if METRICS_FOLDER not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        added_up: Any = MultiProcessCollector  # which has no types
        added_up(together)
        return generate_latest(together)
