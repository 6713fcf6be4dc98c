"""Compact classifiers: evaluation, prefixes of the learning path, cost, saving and loading."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.answers import Rule
from visionshare.class_labels import accuracy, checked_classes
from visionshare.classifier.card import model_card
from visionshare.classifier.checks import check_family, check_weights
from visionshare.classifier.exit_rule import ExitRule, check_rule
from visionshare.classifier.file_format import read_fields, write_fields
from visionshare.classifier.path import PathStep
from visionshare.classifier.unknown import UnknownRule
from visionshare.datasets.image_kinds import as_array, is_vectors
from visionshare.datasets.intake import Intake, Rasters
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.datasets.training_values import TrainingValues
from visionshare.errors import ClassifierFileError, InputError
from visionshare.errors.inputs import checked_path
from visionshare.errors.ranges import LARGEST_WEIGHT, check_range
from visionshare.files.bundled import bundled_classifiers
from visionshare.files.durable import write_text
from visionshare.generators.base import FeatureFamily
from visionshare.generators.costs import held_bytes
from visionshare.generators.layer_summary import LayerSummary
from visionshare.machine.progress import track
from visionshare.scores import finite_scores, predict_labels, softmax

_BATCH = 4096
_BYTES = np.dtype(np.uint8)
# Of classifiers whose training is unknown: the features see numbers as they are.
_UNKNOWN = TrainingValues(0.0, 0.0, "bytes", "numbers")


@dataclass(frozen=True, eq=False)
class CompactClassifier:
    """A classifier of a few image features that all classes share.

    It never changes: :func:`dataclasses.replace` returns another one with some fields replaced
    and all others kept.

    Parameters
    ----------
    family : FeatureFamily
        The chosen features: a family restricted to them.
    weights : ndarray of shape (k, n_features), float32
        Read-only, as the other arrays.
    intercept : ndarray of shape (k,), float32
    classes : ndarray of shape (k,)
        Distinct labels of one type: texts, whole numbers, booleans or finite floats.
    temperature : float, default 1.0
        Divides the scores in :meth:`predict_proba`.
    path : sequence of PathStep, optional
        The classifier after each round of learning.
    metadata : dict, optional
        Plain values that are saved with the classifier.
    exit_rule : ExitRule, optional
        Where images may stop early, see :func:`visionshare.classifier.learn_exit_rule`;
        :class:`visionshare.classifier.EarlyExit` follows it, the classifier evaluates all features.
    preprocessing : Preprocessing, optional
        How pictures become images of ``image_shape``, see
        :func:`visionshare.batch.pictures.read_picture`; they are stretched when omitted.
    values : TrainingValues, optional
        The values of the training images: by them later arrays are scaled, or warned about. When
        omitted, the features see arrays of ``image_shape`` as they are.
    unknown : UnknownRule, optional
        When a picture is refused, see :func:`visionshare.classifier.learn_unknown_rule`.
    answer : ValueRule or LabelRule, optional
        How the value of a picture, or its several labels, follow from probabilities of classes.

    Raises
    ------
    InputError
        If the arrays do not fit each other or the family, or a value is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import CompactClassifier, Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> weights = np.array([[1, 0], [0, 1]], np.float32)
    >>> model = CompactClassifier(family, weights, np.zeros(2, np.float32), np.array(["a", "b"]))
    >>> model.predict(np.array([[0.0, 0.0], [0.0, 1.0]]))
    array(['b'], dtype='<U1')
    >>> replace(model, temperature=2.0).classes_.tolist()
    ['a', 'b']
    """

    family: FeatureFamily
    weights: np.ndarray
    intercept: np.ndarray
    classes: np.ndarray
    temperature: float = 1.0
    path: tuple[PathStep, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    exit_rule: ExitRule | None = None
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    values: TrainingValues | None = None
    unknown: UnknownRule | None = None
    answer: Rule | None = None

    def __post_init__(self) -> None:
        for name, value in (
            ("weights", _read_only(np.ascontiguousarray(self.weights, np.float32))),
            ("intercept", _read_only(np.ascontiguousarray(self.intercept, np.float32))),
            ("classes", _read_only(checked_classes(self.classes))),
            ("temperature", float(self.temperature)),
            ("path", tuple(self.path)),
            ("metadata", dict(self.metadata or {})),
            ("preprocessing", self.preprocessing or Preprocessing()),
        ):
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        k = len(self.classes)
        n = self.family.n_features_
        if self.weights.shape != (k, n):
            raise InputError("weights", self.weights.shape, f"an array of shape {(k, n)}")
        if self.intercept.shape != (k,):
            raise InputError("intercept", self.intercept.shape, f"an array of shape {(k,)}")
        if k < 2:
            raise InputError("classes", self.classes.shape, "a vector of two classes or more")
        check_family(self.family)
        check_weights("weights", self.weights, self.intercept)
        for number, step in enumerate(self.path, 1):
            check_weights(f"path, round {number}", step.weights, step.intercept)
        if not (np.isfinite(self.temperature) and self.temperature > 0):
            raise InputError("temperature", self.temperature, "a finite number above 0")
        check_range("temperature", self.temperature, 1 / LARGEST_WEIGHT, LARGEST_WEIGHT)
        if self.exit_rule is not None:
            check_rule(self.exit_rule, len(self.path))
        if self.picture_size is not None:
            self.preprocessing.check_size(self.picture_size)
        if self.unknown is not None:
            self.unknown.check(self.classes, self.n_features)
        if self.answer is not None:
            self.answer.check(k)

    def __repr__(self) -> str:
        return (
            f"<CompactClassifier: {len(self.classes)} classes, {self.n_features} features of "
            f"the family {type(self.family).name!r}>"
        )

    @property
    def classes_(self) -> np.ndarray:
        """The classes, (k,), as scikit-learn names them."""
        return self.classes

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Shape of one image."""
        return tuple(self.family.image_shape_)

    @property
    def picture_size(self) -> tuple[int, int] | None:
        """Height and width that pictures are brought to; None where examples are vectors."""
        shape = self.image_shape
        return None if len(shape) == 1 else (shape[0], shape[1])

    @property
    def picture_mode(self) -> str:
        """Whether pictures are read as ``"gray"`` or in ``"color"``."""
        return "color" if self.image_shape[2:] == (3,) else "gray"

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.family.n_features_)

    @property
    def macs(self) -> int:
        """Multiply-accumulates per image: features and scores."""
        return int(self.family.macs()) + self.weights.size

    @property
    def layers(self) -> list[LayerSummary]:
        """What each layer gives, holds and costs: those of the features, then the scores.

        Examples
        --------
        >>> from visionshare import Pixels
        >>> family = Pixels().fit(np.zeros((1, 2, 2)))
        >>> model = CompactClassifier(family, np.ones((3, 4)), np.zeros(3), np.arange(3))
        >>> [(layer.name, layer.shape, layer.parameters) for layer in model.layers]
        [('pixels', (4,), 0), ('scores', (3,), 15)]
        """
        k = len(self.classes)
        held = self.weights.size + self.intercept.size
        scores = LayerSummary("scores", (k,), None, held, self.weights.size)
        return [*self.family.layer_summaries(), scores]

    @property
    def n_parameters(self) -> int:
        """Number of learned numbers: templates, biases, masks, directions, offsets, weights."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that prediction needs."""
        return held_bytes(self.family) + self.weights.nbytes + self.intercept.nbytes

    @property
    def features(self) -> list[dict[str, Any]]:
        """Each feature's description, with its weights by class."""
        described = []
        for j in range(self.n_features):
            weights = dict(zip(self.classes.tolist(), self.weights[:, j].tolist(), strict=True))
            described.append({**self.family.describe(j), "weights": weights})
        return described

    def rasters(self, images: Any) -> np.ndarray:
        """Return images as the features see them: (n, *image_shape).

        Parameters
        ----------
        images : array or sequence
            As in :meth:`decision_function`.

        Raises
        ------
        InputError
            If the images are of another kind than the training images.
        DataError
            If a file cannot be read.

        Examples
        --------
        >>> from visionshare import Pixels
        >>> family = Pixels().fit(np.zeros((1, 2, 2)))
        >>> model = CompactClassifier(family, np.ones((3, 4)), np.zeros(3), np.arange(3))
        >>> model.rasters([np.full((20, 30), 7, np.uint8)]).tolist()
        [[[7, 7], [7, 7]]]
        """
        # Whoever classifies picture after picture waits for every step here.
        are_bytes = isinstance(images, np.ndarray) and images.dtype == _BYTES
        if are_bytes and images.shape[1:] == self._raster_shape and len(images) > 0:
            return np.asarray(images)
        shape = self.image_shape
        images = as_array(images)
        if isinstance(images, np.ndarray) and images.shape == shape:
            images = images[None]
        fits = isinstance(images, np.ndarray) and images.shape[1:] == shape
        if self.picture_size is None or (fits and (isinstance(images, Rasters) or not len(images))):
            return np.asarray(images)
        if is_vectors(images):
            given = getattr(images, "shape", "vectors")
            accepted = "images, as in training: one as [image], rows as X.reshape(n, H, W)"
            raise InputError("images", given, accepted)
        made = self._intake.apply(images)
        return made.reshape(len(made), *shape)

    @cached_property
    def _raster_shape(self) -> tuple[int, ...] | None:
        """Shape of an image of bytes that needs no preparation; None where there is no such."""
        keeps_bytes = self.picture_size is not None and self._intake.keeps_bytes
        return self.image_shape if keeps_bytes else None

    @cached_property
    def _intake(self) -> Intake:
        """How images of any kind become rasters."""
        rows, columns, *channels = self.image_shape
        n_channels = channels[0] if channels else 1
        return Intake((rows, columns), n_channels, self.preprocessing, self.values or _UNKNOWN)

    def decision_function(self, images: Any, n_jobs: int = 1) -> np.ndarray:
        """Return scores (n, k), float32.

        Parameters
        ----------
        images : array or sequence
            What the training took: (n, H, W) or (n, H, W, C), or a sequence of images of any sizes,
            of paths of picture files, or of pictures of Pillow; or one array of ``image_shape``.
        n_jobs : int, default 1
            Threads for many images; the result does not depend on it.

        Raises
        ------
        InputError
            If the images are of another kind than the training images, or hold values that are not
            finite, or so large that scores are not.
        DataError
            If a file cannot be read.

        Notes
        -----
        An array of ``image_shape`` is a picture like all others where ``values.arrays`` is
        "pictures", as in the files of :class:`visionshare.ImageClassifier` and of training on
        one's own pictures. Otherwise it is prepared already. What
        :func:`visionshare.batch.read_picture` and :meth:`rasters` return is never prepared twice.
        """
        return self._sums(self.rasters(images), n_jobs)[:, : len(self.classes)]

    def judged(self, images: Any, n_jobs: int = 1) -> tuple[np.ndarray, np.ndarray | None]:
        """Return scores (n, k) and, with a rule, what :meth:`known` returns, from one pass."""
        rasters = self.rasters(images)
        sums = self._sums(rasters, n_jobs)
        rule = self.unknown
        known = None if rule is None else rule.known(rasters, sums, self.temperature)
        return sums[:, : len(self.classes)], known

    def _sums(self, images: np.ndarray, n_jobs: int) -> np.ndarray:
        """Return scores and, beside them, the sums of the rule's directions, (n, k + d)."""
        weights = self.sum_weights
        if len(images) <= _BATCH:
            sums = self.family.weighted_sums(images, weights, n_jobs)
        else:
            starts = track(range(0, len(images), _BATCH), "classifying")
            parts = (images[start : start + _BATCH] for start in starts)
            sums = np.concatenate([self.family.weighted_sums(p, weights, n_jobs) for p in parts])
        scores = sums if weights is self.weights else sums[:, : len(self.classes)]
        scores += self.intercept[None]  # one row plus one row: twice as fast for one image
        return finite_scores(sums, "images")

    @cached_property
    def sum_weights(self) -> np.ndarray:
        """The weights and, below them, the directions of a rule for unknown pictures."""
        if self.unknown is None or self.unknown.directions is None:
            return self.weights
        return _read_only(np.concatenate([self.weights, self.unknown.directions]))

    def predict(self, images: Any, n_jobs: int = 1) -> np.ndarray:
        """Return the class of each image; see :meth:`decision_function` for what is accepted.

        A classifier with a rule for unknown pictures gives those that it refuses the rule's label;
        one with an answer gives values, or several labels as a text: "cat;dog".
        """
        if self.answer is not None:
            return self.answer.said(self.predict_proba(images, n_jobs))
        scores, known = self.judged(images, n_jobs)
        if self.unknown is None or known is None:
            return predict_labels(self.classes, scores)
        return self.unknown.labels(self.classes, scores, known)

    def known(self, images: Any, scores: np.ndarray | None = None) -> np.ndarray:
        """Return how likely it is that each image is of any of the classes, (n,).

        It is the share of known pictures that look as strange as the image: pictures below
        ``unknown.reject`` are refused.

        Parameters
        ----------
        images : array or sequence
            As in :meth:`decision_function`.
        scores : ndarray of shape (n, k), optional
            Their scores, if they are known; not used if the rule needs sums of features too.

        Raises
        ------
        InputError
            If the classifier has no rule for unknown pictures.
        """
        if self.unknown is None:
            raise InputError("unknown", None, "a rule: train with reject=0.01, or --reject 0.01")
        rasters = self.rasters(images)
        if scores is None or self.unknown.directions is not None:
            scores = self._sums(rasters, 1)
        return self.unknown.known(rasters, scores, self.temperature)

    def predict_proba(self, images: Any, n_jobs: int = 1) -> np.ndarray:
        """Return probabilities (n, k), the softmax of scores / temperature."""
        return self.probabilities(self.decision_function(images, n_jobs))

    def score(self, images: Any, y: Any, n_jobs: int = 1) -> float:
        """Return the fraction of the images whose class is predicted; of values R²,
        of several labels that of images with all of them right.
        """
        if self.answer is not None:
            return self.answer.score(self.predict(images, n_jobs), y)
        return accuracy(y, self.predict(images, n_jobs))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities (n, k) of scores (n, k)."""
        if self.answer is not None:
            return self.answer.probabilities(scores, self.temperature)
        return softmax(scores, self.temperature)

    def at(self, t: int) -> CompactClassifier:
        """Return the classifier after the first ``t`` rounds of learning.

        Its probabilities use the temperature that was fitted to the whole classifier.

        Raises
        ------
        InputError
            If the path has no such round.
        """
        if isinstance(t, bool) or not hasattr(t, "__index__") or not 1 <= t <= len(self.path):
            raise InputError("t", t, f"a round from 1 to {len(self.path)}")
        step = self.path[t - 1]
        rule = self.exit_rule
        if rule is not None:
            n = sum(r < t for r in rule.rounds)
            rule = ExitRule(rule.rounds[:n], rule.margins[:n])
        return replace(
            self,
            family=self.family.take(np.arange(step.n_features)),
            weights=step.weights,
            intercept=step.intercept,
            path=self.path[:t],
            exit_rule=rule,
            unknown=None,
        )

    def summary(self) -> dict[str, Any]:
        """Return plain values that describe the classifier."""
        return {
            "family": type(self.family).name,
            "features": self.n_features,
            "classes": self.classes.tolist(),
            "image_shape": list(self.image_shape),
            "parameters": self.n_parameters,
            "macs": self.macs,
            "nbytes": self.nbytes,
            "rounds": len(self.path),
            "temperature": self.temperature,
            "exit_rounds": [] if self.exit_rule is None else list(self.exit_rule.rounds),
            "preprocessing": self.preprocessing.to_values(),
            "metadata": dict(self.metadata),
        }

    def save(self, path: str | os.PathLike[str], card: bool | Mapping[str, Any] = False) -> None:
        """Write the classifier to one data-only file, atomically.

        Parameters
        ----------
        path : path-like
        card : bool or mapping, default False
            Whether a model card is written beside it, under the same name with the ending
            ``.md``; a mapping is what was measured, see
            :func:`visionshare.classifier.model_card`.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        text = None
        if card is not False:
            name = str(self.metadata.get("pipeline") or Path(path).stem)
            figures = None if card is True else card
            text = model_card(self, name, figures, file=Path(path).name)
        write_fields(path, {f.name: getattr(self, f.name) for f in fields(self)})
        if text is not None:
            # Names of classes may hold what no UTF-8 file does.
            text = text.encode("utf-8", "backslashreplace").decode()
            write_text(Path(path).with_suffix(".md"), text)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> CompactClassifier:
        """Read a classifier file, or one that comes with the library.

        Parameters
        ----------
        path : path or str
            A file, or a name that ``visionshare models`` lists, if there is no such file.

        Raises
        ------
        ClassifierFileError
            If the file is missing, broken, foreign, or of a version this library does not know.

        Examples
        --------
        >>> import tempfile
        >>> from visionshare import Pixels, load
        >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
        >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/classifier.safetensors")
        ...     same = load(f"{folder}/classifier.safetensors")
        >>> same.classes_.tolist()
        ['a', 'b']
        """
        given = checked_path("path", path)
        path = given if given.exists() else bundled_classifiers().get(os.fspath(path), given)
        values = read_fields(path)
        try:
            return CompactClassifier(**values)
        except InputError as error:
            raise ClassifierFileError(f"{path}: an invalid classifier ({error})") from None


def _read_only(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to; whoever made the array still can."""
    view = array.view()
    view.flags.writeable = False
    return view


load = CompactClassifier.load
