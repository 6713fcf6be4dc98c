"""The steps of fine-tuning: the same in every process that has some of the images."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from visionshare.datasets.intake import as_rasters
from visionshare.distributed.process_groups import ProcessGroup
from visionshare.files.fingerprints import array_fingerprint
from visionshare.generators.computed import image_batches
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.tuning import ByteNetwork
from visionshare.generators.tuning import Tunable
from visionshare.learners.calibration import fit_temperature, with_an_error
from visionshare.learners.fine_tuning.averaging import Averages
from visionshare.learners.fine_tuning.heads import UNITS, with_units
from visionshare.learners.fine_tuning.loss import Batch, TuningLoss, log_loss
from visionshare.learners.fine_tuning.mixup import Mixture
from visionshare.learners.fine_tuning.parts import (
    Teacher,
    TrainingPart,
    TuningPart,
    batch_bounds,
    order_of,
)
from visionshare.learners.fine_tuning.product_scores import ProductScores
from visionshare.learners.fine_tuning.quantized_scores import QuantizedScores
from visionshare.learners.fine_tuning.settings import FineTuning
from visionshare.learners.fine_tuning.standardized_templates import StandardizedTemplates
from visionshare.solvers import Adam, one_cycle

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier

__all__ = ["Epoch", "Steps", "Tuning", "bytes_per_image", "tuned"]

_logger = logging.getLogger(__name__)

# Images that measure how features and products are scattered, or how sure scores are.
_MEASURED = 20_000
# What images leave in the layers, of those that go through them together.
_FORWARD_BYTES = 512 << 20
# Images that say how large values become, which few bits are to hold.
_MEASURED_FOR_BITS = 2000


@dataclass(frozen=True)
class Epoch:
    """What an epoch left: its figures, and all that the next one begins with, flattened.

    The temperature is fitted after the last epoch alone, NaN before.
    """

    number: int
    loss: float
    train_error: float
    validation_error: float
    temperature: float
    seconds: float
    state: np.ndarray


@dataclass(frozen=True)
class Tuning:
    """What all processes know: where fine-tuning begins, and how large all parts are."""

    classifier: CompactClassifier
    settings: FineTuning
    teacher: Teacher | None
    class_weights: np.ndarray | None
    sizes: np.ndarray
    n_images: int


@dataclass
class _Pass:
    """A part in an epoch, and what its images gave before their steps."""

    images: np.ndarray
    y: np.ndarray
    order: np.ndarray
    taught: np.ndarray | None
    draws: np.random.Generator
    Z: np.ndarray
    loss: float = 0.0
    wrong: int = 0

    def take(self, positions: slice, loss: float, Z: np.ndarray) -> None:
        """Add the loss and the scores of some images."""
        self.loss += loss
        self.Z[:, positions] = Z
        self.wrong += int((np.argmax(Z, axis=0) != self.y[self.order[positions]]).sum())


def tuned(
    group: ProcessGroup, parts: Mapping[int, TuningPart], tuning: Tuning, n_jobs: int
) -> Generator[Any, list[Epoch], None]:
    """Yield the run's identity."""
    # Sent the epochs so far, those that follow, then the classifier.
    own = {i: TrainingPart(i, part, tuning.settings) for i, part in parts.items()}
    steps = Steps(tuning, own, group, n_jobs)
    history = list((yield steps.identity()))
    for epoch in steps.epochs(history):
        history.append(epoch)
        yield epoch
    yield steps.classifier(history)


def bytes_per_image(family: Any) -> float:
    """Return what the layers of a family hold for an image while its gradients are computed.

    Parameters
    ----------
    family : FeatureFamily
        Fitted.

    Examples
    --------
    >>> from visionshare import Pixels
    >>> bytes_per_image(Pixels().fit(np.zeros((1, 8, 8))))
    1024.0
    """
    # Of a layer the values, where each maximum was, and the gradients; of an image its floats.
    held = sum(12.0 * float(np.prod(layer.shape)) for layer in family.layer_summaries())
    return held + 4.0 * float(np.prod(family.image_shape_))


class Steps:
    """The features, the scores, and the steps that move both."""

    def __init__(
        self, tuning: Tuning, parts: Mapping[int, TrainingPart], group: ProcessGroup, n_jobs: int
    ) -> None:
        self.before, self.settings, self.n_jobs = tuning.classifier, tuning.settings, n_jobs
        self.parts, self.group, self.teacher = parts, group, tuning.teacher
        self._n_images, self._sizes = tuning.n_images, tuning.sizes
        self._bounds = batch_bounds(tuning.sizes, tuning.settings.batch)
        settings, classifier = tuning.settings, tuning.classifier
        self.features = self._tunable(classifier.family)
        self.loss = TuningLoss(settings, tuning.class_weights)
        if self.teacher is not None:
            self._teachers_order = order_of(self.teacher.classes_, classifier.classes_)
        X = self._measured(0)
        if settings.head in UNITS:
            classifier = with_units(
                classifier, X, settings.head, settings.n_units, settings.random_state
            )
            self.features = self._tunable(classifier.family)
            X = self._measured(0)
        weights, intercept = (
            a.astype(np.float64) for a in (classifier.weights, classifier.intercept)
        )
        self.scores = ProductScores.start(weights, intercept, X, settings.head == "products")
        self._begin()

    def _begin(self) -> None:
        """Prepare the steps of all that moves, before the first."""
        moving = [*self.features.parameters, self.scores.W, self.scores.c, self.scores.Q]
        rates = [self.settings.rate] * (len(moving) - 1) + [self.settings.product_rate]
        self.adam = Adam(moving, rates)
        self.averages = Averages(moving, self.settings.averaging)

    def _tunable(self, family: Any) -> Tunable:
        """Return a family's features as the settings move them."""
        wrap = StandardizedTemplates if self.settings.weight_standardization else None
        if self.settings.quantization is not None:
            return ByteNetwork(family, wrap)
        features: Tunable = family.tunable()
        return features if wrap is None else wrap(features)

    def _sample(self, epoch: int, most: int) -> dict[int, np.ndarray]:
        """Return about so many of an epoch's images, of each part here."""
        stride = max(1, self._n_images // most)
        return {number: part.images(epoch)[::stride] for number, part in self.parts.items()}

    def _measured(self, epoch: int) -> np.ndarray:
        """Return the features of some images, by which features are measured."""
        found = {number: self._values(x) for number, x in self._sample(epoch, _MEASURED).items()}
        return np.concatenate(self.group.gathered(found))

    def _values(self, images: np.ndarray) -> np.ndarray:
        """Return the features of images."""
        parts = [
            self.features.forward(images[rows], self.n_jobs)[0]
            for rows in self._batches(len(images))
        ]
        n = self.features.family().n_features_ if not parts else parts[0].shape[1]
        return np.concatenate([np.empty((0, n), np.float32), *parts])

    def _batches(self, n: int) -> Iterator[slice]:
        """Yield images that go through the layers together: what each leaves is a lot."""
        yield from image_batches(n, bytes_per_image(self.features.family()), _FORWARD_BYTES)

    def _taught(self, part: TrainingPart, images: np.ndarray) -> np.ndarray | None:
        """Return the teacher's softened probabilities (k, m) of images; None without one."""
        return None if self.teacher is None else part.taught(images, self._probabilities)

    def _probabilities(self, images: np.ndarray) -> np.ndarray:
        assert self.teacher is not None
        scores = self.teacher.decision_function(as_rasters(images), self.n_jobs)[
            :, self._teachers_order
        ]
        return self.loss.teacher.softmax(np.ascontiguousarray(scores.T, np.float32))

    def identity(self) -> str:
        """Return the run's identity: settings, classifier, first images, labels, teacher."""
        settings = np.frombuffer(json.dumps(asdict(self.settings)).encode(), np.uint8)
        digests = {}
        for number, part in self.parts.items():
            first = part.images(0)
            taught = [] if (said := self._taught(part, first)) is None else [said]
            digest = array_fingerprint(part.y, first, *taught)
            digests[number] = np.frombuffer(digest.encode(), np.uint8)
        return array_fingerprint(settings, *self.adam.parameters, *self.group.gathered(digests))

    def epochs(self, history: list[Epoch]) -> Iterator[Epoch]:
        """Yield the epochs that follow ``history``."""
        half = -(-self.settings.epochs // 2)
        if len(history) > half and self.settings.max_features is not None:
            # Which features stayed is told by what they were before.
            self._adopt(history[half - 1].state)
            self._select(half)
        few_bits = self.settings.first_quantized_epoch
        if len(history) > few_bits:
            # And so are the exponents.
            if few_bits:
                self._adopt(history[few_bits - 1].state)
            self._quantize(few_bits)
        if history:
            self._adopt(history[-1].state)
        if len(history) > half:
            self.scores.keep(self.settings.max_products)
        for number in range(len(history), self.settings.epochs):
            begun = time.perf_counter()
            if number == half:
                self._select(number)
            if number == few_bits:
                self._quantize(number)
            if number >= half:
                self.scores.keep(self.settings.max_products)
            loss, error, scores = self._pass(number)
            wrong, temperature = self._judged(number, scores)
            _logger.info("epoch %d: loss %.4f", number + 1, loss)
            seconds = time.perf_counter() - begun
            yield Epoch(number + 1, loss, error, wrong, temperature, seconds, self._state())

    def _select(self, epoch: int) -> None:
        """Keep as many features as are asked for; their steps restart."""
        most, n = self.settings.max_features, self.scores.W.shape[1]
        if most is None or most >= n:
            return
        X = self.scores.standardized(self._measured(epoch))
        stay = np.sort(np.argsort(-self.scores.sizes(X), kind="stable")[:most])
        self.scores = self.scores.take(stay, X)
        self.features = self._tunable(self.features.family().take(stay))
        self._begin()
        _logger.info("%d of %d features stay", most, n)

    def _quantize(self, epoch: int) -> None:
        """Round features and weights from now on."""
        quantization = self.settings.quantization
        assert quantization is not None
        features = cast("ByteNetwork", self.features)
        sample = self._sample(epoch, _MEASURED_FOR_BITS)
        part = np.concatenate(self.group.gathered(sample))
        bits = Bits(quantization.template_bits, quantization.weight_bits)
        with self.averages.in_place():
            self._moved()
            features.quantize(bits, part, self.n_jobs)
            assert features.exponents is not None
            self.scores = QuantizedScores(self.scores, features.exponents, bits.weights)
        self._moved()

    def _pass(self, epoch: int) -> tuple[float, float, dict[int, np.ndarray]]:
        """Take the steps of an epoch."""
        settings, steps = self.settings, self._bounds.shape[1] - 1
        passes = {i: self._part_pass(part, epoch) for i, part in self.parts.items()}
        for s in range(steps):
            rate = one_cycle(epoch * steps + s, settings.epochs * steps, settings.warm_up)
            n = int((self._bounds[:, s + 1] - self._bounds[:, s]).sum())
            gradients = {
                number: self._gradient(one, slice(*self._bounds[number, s : s + 2]), n)
                for number, one in passes.items()
            }
            self._step(self.group.total(gradients), rate)
        figures = {i: np.array([one.loss, float(one.wrong)]) for i, one in passes.items()}
        loss, wrong = self.group.total(figures) / self._sizes.sum()
        return float(loss), float(wrong), {i: one.Z for i, one in passes.items()}

    def _part_pass(self, part: TrainingPart, epoch: int) -> _Pass:
        images, order = part.images(epoch), part.split.order(epoch)
        Z = np.empty((len(self.scores.c), len(order)), np.float32)
        return _Pass(
            images, part.y, order, self._taught(part, images), part.split.draws(3, epoch), Z
        )

    def _gradient(self, one: _Pass, positions: slice, n: int) -> np.ndarray:
        """Return the gradient of the mean loss of n images in all that moves, by some of them."""
        part, mixup = one.order[positions], self.settings.mixup
        if not len(part):
            return np.zeros(sum(p.size for p in self.adam.parameters), np.float32)
        taught = None if one.taught is None else one.taught[:, part]
        mixture = Mixture.drawn(len(part), mixup, one.draws) if mixup else None
        images = one.images[part] if mixture is None else mixture.of(one.images[part])
        batch = Batch(one.y[part], taught, mixture, n)
        scores = self.scores
        values, seen = self.features.forward(images, self.n_jobs)
        X = scores.standardized(values)
        Z, seen_of_scores = scores.scores(X)
        value, R = self.loss.residual(Z, batch)
        G, of_scores = scores.gradients(X, seen_of_scores, R)
        gradients = self.features.backward(images, values, seen, G, self.n_jobs)
        one.take(positions, value * n, Z)
        return np.concatenate([a.ravel() for a in (*gradients, *of_scores)])

    def _step(self, gradient: np.ndarray, rate: float) -> None:
        """Take a step by the gradient of the loss in all that moves."""
        scores, alpha = self.scores, np.float32(self.settings.alpha)
        moving = self.adam.parameters
        ends = np.cumsum([p.size for p in moving])
        parts = np.split(gradient, ends[:-1])
        gradients = [part.reshape(p.shape) for part, p in zip(parts, moving, strict=True)]
        gradients[-3] += alpha * scores.W
        gradients[-1] += alpha * scores.Q
        self.adam.step(gradients, rate)
        self._moved()
        self.averages.update(self.adam.steps)

    def _judged(self, epoch: int, scores: dict[int, np.ndarray]) -> tuple[float, float]:
        """Return the error on the validation images, and the temperature of the last epoch."""
        # Without validation images the scores of before the steps do: they are those of the
        # parameters that moved, and of the images themselves.
        last = epoch + 1 == self.settings.epochs
        alike = not (self.settings.mixup or self.settings.averaging)
        validates = self._sizes.sum() < self._n_images
        if not (validates or last):
            return float("nan"), float("nan")
        if last and self.settings.averaging and isinstance(self.scores, QuantizedScores):
            self._choose_averages(epoch, validates)
        truth = {i: part.y[part.split.order(epoch)] for i, part in self.parts.items()}
        if validates or not alike:
            rows = {i: self._judging(part, validates) for i, part in self.parts.items()}
            truth = {i: part.y[rows[i]] for i, part in self.parts.items()}
            scores = {
                i: self._scores_of(part.images(epoch), rows[i]) for i, part in self.parts.items()
            }
        elif self.group.n > 1:
            # So many say how sure scores are; all of them do not travel.
            stride = max(1, self._n_images // _MEASURED)
            scores = {i: np.ascontiguousarray(Z[:, ::stride]) for i, Z in scores.items()}
            truth = {i: y[::stride] for i, y in truth.items()}
        Z = np.concatenate(self.group.gathered(scores), axis=1)
        y = np.concatenate(self.group.gathered(truth))
        wrong = float(np.mean(np.argmax(Z, axis=0) != y)) if validates else float("nan")
        if not last:
            return wrong, float("nan")
        counted, true = with_an_error(Z.T, y)
        return wrong, fit_temperature(counted, true, np.ones(len(true)))

    def _choose_averages(self, epoch: int, validates: bool) -> None:
        """Have the averages go on from the parameters where these have the smaller loss."""
        # An average of numbers that are rounded may be rounded to what no step has seen.
        losses = {}
        for number, part in self.parts.items():
            rows = self._judging(part, validates)
            y, images = part.y[rows], part.images(epoch)
            averaged = self._scores_of(images, rows)
            with self.averages.set_aside():
                moved = self._scores_of(images, rows)
            losses[number] = np.array([log_loss(averaged, y), log_loss(moved, y)])
        averaged_loss, moved_loss = self.group.total(losses)
        if moved_loss < averaged_loss:
            self.averages.restart()
            _logger.info("the last parameters fit better than their averages")

    def _judging(self, part: TrainingPart, validates: bool) -> np.ndarray:
        """Return the images of a part that the classifier is measured on after an epoch's steps."""
        if validates:
            return part.split.validation
        return part.split.training[:: max(1, int(self._sizes.sum()) // _MEASURED)]

    def _scores_of(self, images: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return scores (k, n) of some images, by the parameters that the classifier has."""
        parts = [np.empty((len(self.scores.c), 0), np.float32)]
        with self._averaged():
            for start in range(0, len(rows), 1024):
                values = self._values(images[rows[start : start + 1024]])
                parts.append(self.scores.scores(self.scores.standardized(values))[0])
        return np.concatenate(parts, axis=1)

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Have the averages stand for the parameters inside of a block, where there are any."""
        with self.averages.in_place():
            self._moved()
            yield
        self._moved()

    def _moved(self) -> None:
        """Take on the current parameters."""
        self.scores.drop()
        self.features.moved()

    def _arrays(self) -> list[np.ndarray]:
        moments = [*self.adam.means, *self.adam.squares]
        return [*self.adam.parameters, *moments, *self.averages.values]

    def _state(self) -> np.ndarray:
        """Return all that moves, end to end, the number of steps last."""
        flat = [a.ravel() for a in self._arrays()]
        return np.concatenate([*flat, [self.adam.steps]]).astype(np.float64)

    def _adopt(self, state: np.ndarray) -> None:
        arrays = self._arrays()
        ends = np.cumsum([a.size for a in arrays])
        parts = np.split(state, ends)
        for array, part in zip(arrays, parts, strict=False):
            array[...] = part.reshape(array.shape).astype(np.float32)
        self.adam.steps = int(parts[-1][0])
        self.features.moved()

    def classifier(self, history: list[Epoch]) -> CompactClassifier:
        """Return the classifier after these epochs."""
        from visionshare.classifier import PathStep

        self.averages.take_over()
        self._moved()
        family: Any = self.features.family()
        weights, products, intercept = self.scores.plain()
        if products.size:
            from visionshare.generators.monomials import Monomials

            n = weights.shape[1]
            kept = self.scores.kept
            pairs = zip(*(i[kept] for i in np.triu_indices(n)), strict=True)
            family = Monomials.of(family, [*((j,) for j in range(n)), *pairs])
            weights = np.concatenate([weights, products[:, kept]], axis=1)
        weights, intercept = weights.astype(np.float32), intercept.astype(np.float32)
        last, before = history[-1], self.before
        temperature = last.temperature
        if isinstance(self.scores, QuantizedScores):
            whole = self.scores.whole()
            weights, intercept = whole.weights, whole.intercept
            temperature = float(np.ldexp(temperature, -whole.exponent))
        error = None if np.isnan(last.validation_error) else last.validation_error
        seconds = sum(e.seconds for e in history) + sum(s.seconds for s in before.path[-1:])
        macs = int(family.macs())
        path = PathStep.whole(weights, intercept, macs, last.loss, last.train_error, error, seconds)
        metadata = {**before.metadata, "fine_tuning": asdict(self.settings)}
        return replace(
            before, family=family, weights=weights, intercept=intercept,
            temperature=temperature, path=(path,), metadata=metadata, exit_rule=None,
        )  # fmt: skip
