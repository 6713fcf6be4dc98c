"""Fine-tuning: the parameters of chosen features and all weights move together, by gradients."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from visionshare.errors import InputError
from visionshare.fingerprints import array_fingerprint
from visionshare.generators.computed import image_batches
from visionshare.generators.quantized.numbers import Bits
from visionshare.generators.quantized.tuning import ByteFeatures
from visionshare.generators.tuning import Tunable
from visionshare.learners.calibration import fit_temperature, with_an_error
from visionshare.learners.checkpoint import Run
from visionshare.learners.class_weights import weights_of_classes
from visionshare.learners.fine_tuning.averaging import Averages
from visionshare.learners.fine_tuning.heads import UNITS, with_units
from visionshare.learners.fine_tuning.loss import Batch, TuningLoss
from visionshare.learners.fine_tuning.mixup import Mixture
from visionshare.learners.fine_tuning.product_scores import ProductScores
from visionshare.learners.fine_tuning.quantized_scores import QuantizedScores
from visionshare.learners.fine_tuning.settings import FineTuning
from visionshare.learners.fine_tuning.standardized_templates import StandardizedTemplates
from visionshare.resources import thread_limit
from visionshare.solvers import Adam, one_cycle

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier

__all__ = ["Epoch", "FineTuning", "Teacher", "bytes_per_image", "fine_tune"]

_logger = logging.getLogger(__name__)

# Images that measure how features and products are scattered, or how sure scores are.
_MEASURED = 20_000
# What images leave in the layers, of those that go through them together.
_FORWARD_BYTES = 512 << 20
# Images that say how large values become, which few bits are to hold.
_MEASURED_FOR_BITS = 2000


class Teacher(Protocol):
    """A teacher: scores of images, (n, k), the columns in the order of its classes.

    :class:`visionshare.CompactClassifier` is one.
    """

    classes_: np.ndarray

    def decision_function(self, images: np.ndarray, n_jobs: int = 1) -> np.ndarray: ...


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
    held = sum(12.0 * float(np.prod(layer.shape)) for layer in family.layers())
    return held + 4.0 * float(np.prod(family.image_shape_))


def fine_tune(
    classifier: CompactClassifier,
    images: np.ndarray | Callable[[int], np.ndarray],
    labels: np.ndarray,
    settings: FineTuning | None = None,
    *,
    teacher: Teacher | None = None,
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> CompactClassifier:
    """Return the classifier after gradient steps on its features' parameters and its weights.

    The greedy search takes features of a pool unchanged; here each moves to where it serves
    the others best, through the maxima, by the loss that chose it. Products of pairs of features
    may join: they cost a multiplication each.

    Parameters
    ----------
    classifier : CompactClassifier
        Of a family whose parameters can move, see :mod:`visionshare.generators.tuning`.
    images : ndarray of shape (m, *image_shape), or callable
        The training images; a callable returns those of an epoch (from 0), such as deformed copies,
        with the same labels.
    labels : ndarray of shape (m,)
        Classes of the images.
    settings : FineTuning, optional
    teacher : Teacher, optional
        A better classifier of the same classes, such as a larger one or the mean of several: its
        scores of each image join the loss. One that was trained on the very images says little
        more than their labels do; let it see other copies.
    n_jobs : int, default 1
        Threads; the classifier does not depend on it.
    checkpoint : path-like, optional
        Folder that keeps each epoch; a run that was stopped resumes from there, bit for bit.
    progress : bool, default False
        Show a progress bar.

    Returns
    -------
    CompactClassifier
        At the cost of before and that of the products, less that of features that went. Its path
        is a single step. Its temperature is fitted to the validation images; without such to the
        last epoch's scores, each taken before its image's step: those are over-confident, less so
        where the images of each epoch are new.

    Raises
    ------
    InputError
        If the family cannot move, or labels or the teacher's classes do not fit.

    Notes
    -----
    Adam steps with a one-cycle rate.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import PatchTemplates, ShareBoost
    >>> images, y = load_digits().images, load_digits().target
    >>> images = (images * 15).astype(np.uint8)
    >>> pool = PatchTemplates(3, 30, grid=3, widths=(2.0,), n_patches=3000).fit(images[:900])
    >>> greedy = ShareBoost(rounds=10).fit(pool.transform(images[:900]), y[:900])
    >>> before = greedy.to_classifier(pool)
    >>> after = fine_tune(before, images[:900], y[:900], FineTuning(epochs=10, batch=32, rate=0.01))
    >>> errors = [np.mean(c.predict(images[900:]) != y[900:]) for c in (before, after)]
    >>> bool(errors[1] < errors[0])
    True
    """
    settings = FineTuning() if settings is None else settings
    steps = _Steps(classifier, images, labels, settings, teacher, n_jobs)
    epochs = Run(Epoch, settings.epochs, checkpoint, steps.identity, progress=progress)
    return steps.classifier(epochs.collect(steps.epochs(epochs.history), "fine-tuning"))


def _order_of(theirs: np.ndarray, ours: np.ndarray) -> np.ndarray:
    """Return where each of our classes is among a teacher's.

    Raises
    ------
    InputError
        If they are not the same classes.
    """
    position = {name: i for i, name in enumerate(theirs.tolist())}
    if set(position) != set(ours.tolist()):
        given, accepted = (", ".join(map(str, names.tolist())) for names in (theirs, ours))
        raise InputError("teacher", f"classes {given}", f"the classifier's: {accepted}")
    return np.array([position[name] for name in ours.tolist()])


class _Steps:
    """The features, the scores, and the steps that move both."""

    def __init__(
        self,
        classifier: CompactClassifier,
        images: np.ndarray | Callable[[int], np.ndarray],
        labels: np.ndarray,
        settings: FineTuning,
        teacher: Teacher | None,
        n_jobs: int,
    ) -> None:
        self.before, self.settings, self.n_jobs = classifier, settings, n_jobs
        self.features = self._tunable(classifier.family)
        labels = np.asarray(labels)
        if labels.ndim != 1 or len(labels) == 0:
            raise InputError("labels", labels.shape, "a class for each image")
        index = {c: q for q, c in enumerate(classifier.classes_.tolist())}
        unknown = sorted(set(labels.tolist()) - set(index), key=str)
        if unknown:
            known = ", ".join(map(str, index))
            raise InputError("labels", unknown[0], f"classes of the classifier: {known}")
        self.y = np.array([index[c] for c in labels.tolist()], np.int64)
        order = np.random.default_rng([settings.random_state, 1]).permutation(len(self.y))
        n_validation = round(settings.validation_fraction * len(self.y))
        if n_validation == len(self.y):
            accepted = "a smaller one: no image is left to train on"
            raise InputError("validation_fraction", settings.validation_fraction, accepted)
        self.validation = np.sort(order[:n_validation])
        self.training = np.sort(order[n_validation:])
        self._images = images if callable(images) else lambda epoch: images
        self._last_images: tuple[int, np.ndarray] | None = None
        class_weights = None
        if settings.class_weight is not None:
            trained = self.y[self.training]
            class_weights = weights_of_classes(settings.class_weight, trained, list(index))
        self.loss = TuningLoss(settings, class_weights)
        self.teacher = teacher
        self._last_taught: tuple[np.ndarray, np.ndarray] | None = None
        if teacher is not None:
            self._teachers_order = _order_of(teacher.classes_, classifier.classes_)
        X = self._measured(self.images(0))
        if settings.head in UNITS:
            classifier = with_units(
                classifier, X, settings.head, settings.n_units, settings.random_state
            )
            self.features = self._tunable(classifier.family)
            X = self._measured(self.images(0))
        weights, intercept = (
            a.astype(np.float64) for a in (classifier.weights, classifier.intercept)
        )
        with thread_limit(n_jobs):
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
            return ByteFeatures(family, wrap)
        features: Tunable = family.tunable()
        return features if wrap is None else wrap(features)

    def _measured(self, images: np.ndarray) -> np.ndarray:
        """Return the features of some images, by which features are measured."""
        part = images[:: max(1, len(images) // _MEASURED)]
        return np.concatenate([
            self.features.forward(part[rows], self.n_jobs)[0] for rows in self._batches(len(part))
        ])  # fmt: skip

    def _batches(self, n: int) -> Iterator[slice]:
        """Yield images that go through the layers together: what each leaves is a lot."""
        yield from image_batches(n, bytes_per_image(self.features.family()), _FORWARD_BYTES)

    def images(self, epoch: int) -> np.ndarray:
        """Return an epoch's images.

        Raises
        ------
        InputError
            If they are not as many as the labels.
        """
        # The first epoch's are asked for by all that comes before it too.
        if self._last_images is not None and self._last_images[0] == epoch:
            return self._last_images[1]
        images = np.asarray(self._images(epoch))
        self._last_images = epoch, images
        if len(images) != len(self.y):
            raise InputError("images", len(images), f"{len(self.y)} images, as many as labels")
        return images

    def taught(self, images: np.ndarray) -> np.ndarray | None:
        """Return the teacher's softened probabilities (k, m) of images; None without one."""
        if self.teacher is None:
            return None
        # Images that stay the same from epoch to epoch are scored once.
        if self._last_taught is None or self._last_taught[0] is not images:
            scores = self.teacher.decision_function(images, self.n_jobs)[:, self._teachers_order]
            transposed = np.ascontiguousarray(scores.T, np.float32)
            self._last_taught = images, self.loss.teacher.softmax(transposed)
        return self._last_taught[1]

    def identity(self) -> str:
        """Return the run's identity: settings, classifier, first images, labels, teacher."""
        settings = np.frombuffer(json.dumps(asdict(self.settings)).encode(), np.uint8)
        moving, first = self.adam.parameters, self.images(0)
        taught = [] if (probabilities := self.taught(first)) is None else [probabilities]
        return array_fingerprint(settings, *moving, self.y, first, *taught)

    def epochs(self, history: list[Epoch]) -> Iterator[Epoch]:
        """Yield the epochs that follow ``history``."""
        half = -(-self.settings.epochs // 2)
        if len(history) > half and self.settings.max_features is not None:
            # Which features stayed is told by what they were before.
            self._adopt(history[half - 1].state)
            self._select(self.images(half))
        few_bits = self.settings.first_quantized_epoch
        if len(history) > few_bits:
            # And so are the exponents.
            if few_bits:
                self._adopt(history[few_bits - 1].state)
            self._quantize(self.images(few_bits))
        if history:
            self._adopt(history[-1].state)
        if len(history) > half:
            self.scores.keep(self.settings.max_products)
        for number in range(len(history), self.settings.epochs):
            begun = time.perf_counter()
            images = self.images(number)
            if number == half:
                self._select(images)
            if number == few_bits:
                self._quantize(images)
            if number >= half:
                self.scores.keep(self.settings.max_products)
            rng = np.random.default_rng([self.settings.random_state, 0, number])
            order = rng.permutation(self.training)
            with thread_limit(self.n_jobs):
                loss, Z = self._pass(images, order, number)
                error = float(np.mean(np.argmax(Z, axis=0) != self.y[order]))
                last = number + 1 == self.settings.epochs
                rows = self._judged(last)
                scores, truth = Z, self.y[order]
                if len(rows):
                    scores, truth = self._scores_of(images, rows), self.y[rows]
            wrong = float(np.mean(np.argmax(scores, axis=0) != truth))
            wrong = wrong if len(self.validation) else float("nan")
            temperature = float("nan")
            if last:
                counted, true = with_an_error(scores.T, truth)
                temperature = fit_temperature(counted, true, np.ones(len(true)))
            _logger.info("epoch %d: loss %.4f", number + 1, loss)
            seconds = time.perf_counter() - begun
            yield Epoch(number + 1, loss, error, wrong, temperature, seconds, self._state())

    def _select(self, images: np.ndarray) -> None:
        """Keep as many features as are asked for; their steps restart."""
        most, n = self.settings.max_features, self.scores.W.shape[1]
        if most is None or most >= n:
            return
        with thread_limit(self.n_jobs):
            X = self.scores.standardized(self._measured(images))
            stay = np.sort(np.argsort(-self.scores.sizes(X), kind="stable")[:most])
            self.scores = self.scores.take(stay, X)
        self.features = self._tunable(self.features.family().take(stay))
        self._begin()
        _logger.info("%d of %d features stay", most, n)

    def _quantize(self, images: np.ndarray) -> None:
        """Round features and weights from now on."""
        quantization = self.settings.quantization
        assert quantization is not None
        features = cast("ByteFeatures", self.features)
        part = images[:: max(1, len(images) // _MEASURED_FOR_BITS)]
        bits = Bits(quantization.template_bits, quantization.weight_bits)
        with thread_limit(self.n_jobs), self.averages.in_place():
            self._moved()
            features.quantize(bits, part, self.n_jobs)
            assert features.exponents is not None
            self.scores = QuantizedScores(self.scores, features.exponents, bits.weights)
        self._moved()

    def _pass(self, images: np.ndarray, order: np.ndarray, number: int) -> tuple[float, np.ndarray]:
        """Take the steps of an epoch; return their mean loss, and scores (k, m) in that order."""
        batch, epochs = self.settings.batch, self.settings.epochs
        steps, total = -(-len(order) // batch), 0.0
        Z = np.empty((len(self.scores.c), len(order)), np.float32)
        probabilities, mixup = self.taught(images), self.settings.mixup
        rng = np.random.default_rng([self.settings.random_state, 3, number])
        for s in range(steps):
            positions = slice(s * batch, (s + 1) * batch)
            part = order[positions]
            rate = one_cycle(number * steps + s, epochs * steps, self.settings.warm_up)
            taught = None if probabilities is None else probabilities[:, part]
            mixture = Mixture.drawn(len(part), mixup, rng) if mixup else None
            seen = images[part] if mixture is None else mixture.of(images[part])
            known = Batch(self.y[part], taught, mixture)
            value, Z[:, positions] = self._step(seen, known, rate)
            total += value * len(part)
        return total / len(order), Z

    def _judged(self, last: bool) -> np.ndarray:
        """Return the images that the classifier of an epoch is measured on, after its steps.

        None where the scores of before the steps do: they are those of the parameters that moved,
        and of the images themselves.
        """
        alike = not (self.settings.mixup or self.settings.averaging)
        if len(self.validation) or alike or not last:
            return self.validation
        return self.training[:: max(1, len(self.training) // _MEASURED)]

    def _scores_of(self, images: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return scores (k, n) of some images, by the parameters that the classifier has."""
        parts = []
        with self._averaged():
            for start in range(0, len(rows), 1024):
                part = rows[start : start + 1024]
                values = np.concatenate([
                    self.features.forward(images[part[some]], self.n_jobs)[0]
                    for some in self._batches(len(part))
                ])  # fmt: skip
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

    def _step(self, images: np.ndarray, batch: Batch, rate: float) -> tuple[float, np.ndarray]:
        """Take a step on some images; return their mean loss and their scores before it."""
        scores, alpha = self.scores, np.float32(self.settings.alpha)
        values, seen = self.features.forward(images, self.n_jobs)
        X = scores.standardized(values)
        Z, seen_of_scores = scores.scores(X)
        value, R = self.loss.residual(Z, batch)
        G, (dW, dc, dQ) = scores.gradients(X, seen_of_scores, R)
        gradients = self.features.backward(images, values, seen, G, self.n_jobs)
        gradients += [dW + alpha * scores.W, dc, dQ + alpha * scores.Q]
        self.adam.step(gradients, rate)
        self._moved()
        self.averages.update(self.adam.steps)
        return value, Z

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
