"""The loop of fine-tuning: steps, epochs, and the classifier that they leave."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from visionshare.distributed.engine import Engine
from visionshare.distributed.host import PerPart
from visionshare.distributed.sums import tree_sum
from visionshare.files.fingerprints import array_fingerprint
from visionshare.generators.layers.tuning import ByteNetwork
from visionshare.generators.tuning import Tunable
from visionshare.learners.calibration import fit_temperature, with_an_error
from visionshare.learners.fine_tuning.averaging import Averages
from visionshare.learners.fine_tuning.heads import UNITS, with_units
from visionshare.learners.fine_tuning.loss import Batch, TuningLoss, log_loss
from visionshare.learners.fine_tuning.model import (
    MovingClassifier,
    batch_gradient,
    digest,
    features_of,
    sample,
    scores_of,
    unflattened,
)
from visionshare.learners.fine_tuning.parts import PartSplit, batch_bounds
from visionshare.learners.fine_tuning.product_scores import ProductScores
from visionshare.learners.fine_tuning.quantized_scores import QuantizedScores
from visionshare.learners.fine_tuning.settings import FineTuning
from visionshare.learners.fine_tuning.standardized_templates import StandardizedTemplates
from visionshare.solvers import OPTIMIZERS, one_cycle

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier

_logger = logging.getLogger(__name__)

# Images that measure how features and products are scattered, or how sure scores are.
_MEASURED = 20_000
# Images that say how large values become, which few bits are to hold.
_MEASURED_FOR_BITS = 2000
_NAN = float("nan")


@dataclass(frozen=True)
class Epoch:
    """What an epoch left: its figures, and all that the next one begins with, flattened."""

    number: int
    loss: float
    train_error: float
    validation_error: float
    # Fitted after the last epoch alone, NaN before.
    temperature: float
    seconds: float
    state: np.ndarray


class Tuner:
    """The features and scores of a classifier, and the steps that move both.

    The images lie in the partitions of an engine, in this process or on workers; all that changes
    from step to step is here.
    """

    def __init__(
        self,
        classifier: CompactClassifier,
        settings: FineTuning,
        engine: Engine,
        labels: list[np.ndarray],
        splits: list[PartSplit],
        class_weights: np.ndarray | None,
        n_jobs: int,
        counts: list[np.ndarray] | None = None,
    ) -> None:
        self.before = classifier
        self.settings = settings
        self.n_jobs = n_jobs
        self._engine = engine
        self._labels = labels
        # What the images of each part count.
        self._counts = counts
        self._splits = splits
        self._n_images = sum(map(len, labels))
        sizes = np.array([len(split.training) for split in splits])
        self._n_training = int(sizes.sum())
        self._bounds = batch_bounds(sizes, settings.batch)
        features = self._tunable(classifier.family)
        X = self._measured(features, 0)
        if settings.head in UNITS:
            seed = settings.random_state
            classifier = with_units(classifier, X, settings.head, settings.n_units, seed)
            features = self._tunable(classifier.family)
            X = self._measured(features, 0)
        weights = classifier.weights.astype(np.float64)
        intercept = classifier.intercept.astype(np.float64)
        scores = ProductScores.start(weights, intercept, X, settings.head == "products")
        self.model = MovingClassifier(features, scores, TuningLoss(settings, class_weights))
        self._begin()

    def _begin(self) -> None:
        """Prepare the steps of all that moves, before the first."""
        moving = self.model.parameters
        rates = [self.settings.rate] * (len(moving) - 1) + [self.settings.product_rate]
        self.optimizer = OPTIMIZERS[self.settings.optimizer](moving, rates)
        self.averages = Averages(moving, self.settings.averaging)

    def _tunable(self, family: Any) -> Tunable:
        """Return a family's features as the settings move them."""
        wrap = StandardizedTemplates if self.settings.weight_standardization else None
        if self.settings.quantization is not None:
            return ByteNetwork(family, wrap)
        features: Tunable = family.tunable()
        return features if wrap is None else wrap(features)

    def _measured(self, features: Tunable, epoch: int) -> np.ndarray:
        """Return the features of some images, by which features are measured."""
        stride = max(1, self._n_images // _MEASURED)
        return np.concatenate(self._each(features_of, features, epoch, stride))

    def _each(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return what a function gives of each part, where its images are."""
        return self._engine.each(function, self._engine.data, *args)

    def identity(self) -> str:
        """Return the run's identity: settings, classifier, first images, labels, teacher."""
        settings = np.frombuffer(json.dumps(asdict(self.settings)).encode(), np.uint8)
        digests = self._each(digest, _pieces(self._labels))
        counts = self._counts or []
        return array_fingerprint(settings, *self.model.parameters, *digests, *counts)

    def epochs(self, history: list[Epoch]) -> Iterator[Epoch]:
        """Yield the epochs that follow ``history``."""
        settings = self.settings
        half = -(-settings.epochs // 2)
        few_bits = settings.first_quantized_epoch
        self._resume(history, half, few_bits)
        for number in range(len(history), settings.epochs):
            begun = time.perf_counter()
            # 1) features and products go, bits become few
            if number == half:
                self._select(number)
            if number == few_bits:
                self._quantize(number)
            if number >= half:
                self.model.scores.keep(settings.max_products)
            # 2) the steps
            loss, error, scores = self._steps(number)
            # 3) what they are worth
            wrong, temperature = self._judged(number, scores)
            _logger.info("epoch %d: loss %.4f", number + 1, loss)
            seconds = time.perf_counter() - begun
            yield Epoch(number + 1, loss, error, wrong, temperature, seconds, self._state())

    def _resume(self, history: list[Epoch], half: int, few_bits: int) -> None:
        """Go to where ``history`` ends."""
        if len(history) > half and self.settings.max_features is not None:
            # Which features stayed is told by what they were before.
            self._adopt(history[half - 1].state)
            self._select(half)
        if len(history) > few_bits:
            # And so are the exponents.
            if few_bits:
                self._adopt(history[few_bits - 1].state)
            self._quantize(few_bits)
        if history:
            self._adopt(history[-1].state)
        if len(history) > half:
            self.model.scores.keep(self.settings.max_products)

    def _select(self, epoch: int) -> None:
        """Keep as many features as are asked for; their steps restart."""
        model = self.model
        most = self.settings.max_features
        n = model.scores.W.shape[1]
        if most is None or most >= n:
            return
        X = model.scores.standardized(self._measured(model.features, epoch))
        stay = np.sort(np.argsort(-model.scores.sizes(X), kind="stable")[:most])
        features = self._tunable(model.features.family().take(stay))
        self.model = replace(model, features=features, scores=model.scores.take(stay, X))
        self._begin()
        _logger.info("%d of %d features stay", most, n)

    def _quantize(self, epoch: int) -> None:
        """Round features and weights from now on."""
        quantization = self.settings.quantization
        assert quantization is not None
        features = cast("ByteNetwork", self.model.features)
        stride = max(1, self._n_images // _MEASURED_FOR_BITS)
        images = np.concatenate(self._each(sample, epoch, stride))
        bits = quantization.bits
        with self._averaged():
            features.quantize(bits, images, self.n_jobs)
            assert features.exponents is not None
            scores = QuantizedScores(
                self.model.scores, features.exponents, bits.scores or bits.weights
            )
            self.model = replace(self.model, scores=scores)

    def _steps(self, epoch: int) -> tuple[float, float, list[np.ndarray]]:
        """Take an epoch's steps; return loss, error and scores (k, m) of images before theirs."""
        settings = self.settings
        n_steps = self._bounds.shape[1] - 1
        orders = [split.order(epoch) for split in self._splits]
        found: list[list[tuple[float, np.ndarray]]] = [[] for _ in orders]
        # In an epoch only the parameters travel.
        model = self._engine.shared(self.model)
        for step in range(n_steps):
            # 1) the images of the step, of each part
            bounds = self._bounds[:, step : step + 2]
            n = int((bounds[:, 1] - bounds[:, 0]).sum())
            rows = [order[a:b] for order, (a, b) in zip(orders, bounds, strict=True)]
            batches = [
                Batch(y[own], None, n, None if self._counts is None else self._counts[part][own])
                for part, (y, own) in enumerate(zip(self._labels, rows, strict=True))
            ]
            # 2) the sum of all parts' gradients
            gradient, before = self._engine.total(
                batch_gradient, self._engine.data, model, self.model.version, self.model.flat(),
                epoch, _pieces(rows), _pieces(batches),
            )  # fmt: skip
            for part, (loss, Z) in zip(found, before, strict=True):
                part.append((loss * n, Z))
            # 3) a step
            rate = one_cycle(epoch * n_steps + step, settings.epochs * n_steps, settings.warm_up)
            self._step(gradient, rate)
        return self._figures(orders, found)

    def _step(self, gradient: np.ndarray, rate: float) -> None:
        """Take a step by the gradient of the loss in all that moves."""
        scores = self.model.scores
        alpha = np.float32(self.settings.alpha)
        gradients = unflattened(gradient, self.optimizer.parameters)
        gradients[-3] += alpha * scores.W
        gradients[-1] += alpha * scores.Q
        self.optimizer.step(gradients, rate)
        self.model.moved()
        self.averages.update(self.optimizer.steps)

    def _figures(
        self, orders: list[np.ndarray], found: list[list[tuple[float, np.ndarray]]]
    ) -> tuple[float, float, list[np.ndarray]]:
        """Return the mean loss and error of all images, and the scores of each part's."""
        figures = []
        scores = []
        for y, order, steps in zip(self._labels, orders, found, strict=True):
            Z = np.concatenate([of_step for _, of_step in steps], axis=1)
            wrong = np.count_nonzero(np.argmax(Z, axis=0) != y[order])
            figures.append(np.array([sum(loss for loss, _ in steps), float(wrong)]))
            scores.append(Z)
        loss, error = tree_sum(figures) / self._n_training
        return float(loss), float(error), scores

    def _judged(self, epoch: int, scores: list[np.ndarray]) -> tuple[float, float]:
        """Return the error on the validation images, and the temperature of the last epoch."""
        settings = self.settings
        last = epoch + 1 == self.settings.epochs
        validates = self._n_training < self._n_images
        if not (validates or last):
            return _NAN, _NAN
        if last and settings.averaging and isinstance(self.model.scores, QuantizedScores):
            self._choose_averages(epoch)
        if validates or settings.averaging:
            rows = self._judging()
            with self._averaged():
                scores = self._scores_of(epoch, rows)
        else:
            # Scores from before the step do: they belong to the parameters that moved.
            rows = [split.order(epoch) for split in self._splits]
            if len(rows) > 1:
                stride = max(1, self._n_images // _MEASURED)
                rows = [order[::stride] for order in rows]
                scores = [np.ascontiguousarray(Z[:, ::stride]) for Z in scores]
        Z = np.concatenate(scores, axis=1)
        y = np.concatenate([y[own] for y, own in zip(self._labels, rows, strict=True)])
        wrong = float(np.mean(np.argmax(Z, axis=0) != y)) if validates else _NAN
        if not last:
            return wrong, _NAN
        counted, true = with_an_error(Z.T, y)
        return wrong, fit_temperature(counted, true, np.ones(len(true)))

    def _choose_averages(self, epoch: int) -> None:
        """Have the averages go on from the parameters where these have the smaller loss."""
        # An average of numbers that are rounded may be rounded to what no step has seen.
        rows = self._judging()
        moved = self._scores_of(epoch, rows)
        with self._averaged():
            averaged = self._scores_of(epoch, rows)
        truth = [y[own] for y, own in zip(self._labels, rows, strict=True)]
        losses = [
            tree_sum([np.array(log_loss(Z, y)) for Z, y in zip(scores, truth, strict=True)])
            for scores in (averaged, moved)
        ]
        if losses[1] < losses[0]:
            self.averages.restart()
            _logger.info("the last parameters fit better than their averages")

    def _judging(self) -> list[np.ndarray]:
        """Return the images of each part that the classifier is measured on after the steps."""
        if self._n_training < self._n_images:
            return [split.validation for split in self._splits]
        stride = max(1, self._n_training // _MEASURED)
        return [split.training[::stride] for split in self._splits]

    def _scores_of(self, epoch: int, rows: list[np.ndarray]) -> list[np.ndarray]:
        """Return scores (k, n) of some images of each part, by the current parameters."""
        return self._each(scores_of, self.model, epoch, _pieces(rows))

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Have the averages stand for the parameters inside of a block, where there are any."""
        with self.averages.in_place():
            self.model.moved()
            yield
        self.model.moved()

    def _arrays(self) -> list[np.ndarray]:
        moments = [*self.optimizer.means, *self.optimizer.squares]
        return [*self.optimizer.parameters, *moments, *self.averages.values]

    def _state(self) -> np.ndarray:
        """Return all that moves, end to end, the number of steps last."""
        flat = [a.ravel() for a in self._arrays()]
        return np.concatenate([*flat, [self.optimizer.steps]]).astype(np.float64)

    def _adopt(self, state: np.ndarray) -> None:
        arrays = self._arrays()
        for array, values in zip(arrays, unflattened(state[:-1], arrays), strict=True):
            array[...] = values.astype(np.float32)
        self.optimizer.steps = int(state[-1])
        self.model.features.moved()

    def classifier(self, history: list[Epoch]) -> CompactClassifier:
        """Return the classifier after these epochs."""
        from visionshare.classifier import PathStep

        self.averages.take_over()
        self.model.moved()
        scores = self.model.scores
        last = history[-1]
        before = self.before
        family: Any = self.model.features.family()
        weights, products, intercept = scores.plain()
        if products.size:
            family, weights = _with_products(family, weights, products, scores.kept)
        weights = weights.astype(np.float32)
        intercept = intercept.astype(np.float32)
        temperature = last.temperature
        if isinstance(scores, QuantizedScores):
            whole = scores.whole()
            weights = whole.weights
            intercept = whole.intercept
            temperature = float(np.ldexp(temperature, -whole.exponent))
        error = None if np.isnan(last.validation_error) else last.validation_error
        seconds = sum(e.seconds for e in history) + sum(s.seconds for s in before.path[-1:])
        macs = int(family.macs())
        path = PathStep.whole(weights, intercept, macs, last.loss, last.train_error, error, seconds)
        metadata = {**before.metadata, "fine_tuning": asdict(self.settings)}
        return replace(
            before, family=family, weights=weights, intercept=intercept,
            temperature=temperature, path=(path,), metadata=metadata, exit_rule=None,
            unknown=None,
        )  # fmt: skip


def _pieces(values: list[Any]) -> PerPart:
    """Return an argument that gives each part its own value."""
    return PerPart(dict(enumerate(values)))


def _with_products(
    family: Any, weights: np.ndarray, products: np.ndarray, kept: np.ndarray
) -> tuple[Any, np.ndarray]:
    """Return a family with the products of pairs of its features that count, and all weights."""
    from visionshare.generators.monomials import Monomials

    n = weights.shape[1]
    pairs = zip(*(i[kept] for i in np.triu_indices(n)), strict=True)
    monomials = Monomials.of(family, [*((j,) for j in range(n)), *pairs])
    return monomials, np.concatenate([weights, products[:, kept]], axis=1)
