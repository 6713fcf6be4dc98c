"""ImageClassifier: images and labels in, a compact classifier out."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from visionshare.answers import LabelRule, ValueRule
from visionshare.class_labels import accuracy, label_array
from visionshare.classifier import CompactClassifier
from visionshare.datasets import Augmentation, ImageSet, Preprocessing
from visionshare.datasets.image_kinds import as_array, is_vectors
from visionshare.datasets.intake import Intake
from visionshare.distributed import cluster_client
from visionshare.errors import InputError
from visionshare.generators import FeatureFamily
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.choice import Choice, choose
from visionshare.image_classifier.copies import grouped
from visionshare.image_classifier.exporting import written_recipe
from visionshare.image_classifier.fitted import ImageEstimator
from visionshare.image_classifier.parameters import (
    checked_settings,
    seed_of,
    weights_of_numbers,
)
from visionshare.image_classifier.pictures import LEAST_SIDE, propose_intake
from visionshare.image_classifier.pretrained import Seen, asked_for, transfer_of
from visionshare.image_classifier.proposals import Data, Greedy
from visionshare.image_classifier.refusal import RefusalSettings
from visionshare.image_classifier.several_labels import label_names, several_labels
from visionshare.image_classifier.state import SearchSettings
from visionshare.image_classifier.teaching import taught_learner, teacher_part
from visionshare.image_classifier.trials import ProposalLearner, table
from visionshare.image_classifier.warm_start import (
    goes_on_from,
    intake_of,
    learned_on_images,
)
from visionshare.learners.class_weights import check_class_weight
from visionshare.learners.examples import (
    check_length,
    checked_table,
    checked_targets,
    classes_and_numbers,
    example_weights,
)
from visionshare.machine.resources import resolve_jobs
from visionshare.recipes.writing import toml_text
from visionshare.scores import flat_scores, predict_labels

_logger = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class ImageClassifier(ClassifierMixin, ImageEstimator):
    """A classifier of images that chooses features, augmentation and head by itself.

    Layers of templates, on the image or on channels of it, with several augmentations and heads,
    and greedy choices from pools of features are compared on a held-out part of the training
    images; the best is trained again on all of them. Flips, changes of color, channels and
    deslanting are taken only where held-out images are classified better.

    Parameters
    ----------
    features : "auto", str or FeatureFamily, default "auto"
        What to search. The name of a bundled pool, such as "channels", or a family such as
        ``GaborBank()``: then ShareBoost chooses among these features alone.
    budget : number or mapping, optional
        What the classifier may cost an image: multiply-accumulates, or limits by name,
        ``{"macs": 200_000, "bytes": 65_536, "microseconds": 50}``. A million multiply-accumulates
        when omitted. Microseconds are measured on this machine, one thread, among many images.
        With ``{"flash": "10KiB"}`` it learns in whole numbers of few bits what fits, with its
        code, into so much flash of a Cortex-M4, and three million multiply-accumulates.
    time : float, optional
        Seconds that ``fit`` may take, roughly: half of them search, the more the longer, and an
        epoch that has begun ends. When omitted the search is counted, in trials and epochs that
        follow from the number of images: about half a minute for a thousand small images, minutes
        for tens of thousands.
    size : int or (int, int), optional
        Side, or height and width, that images are brought to. The medians of the training images
        when omitted, shrunk so that no side is above 48; the longer side is 16 at least where
        ``features`` is "auto" and flash is not limited.
    color : {"auto", True, False}, default "auto"
        Whether colors are seen; "auto" where training images have any.
    augment : {"auto", True, False} or Augmentation, default "auto"
        Whether each epoch sees random copies of the images: "auto" where it helps, True always.
    class_weight : dict or "balanced", optional
        What an image of each class counts, 1 for classes that a dict does not name; "balanced" as
        if each class had the same number of images.
    teacher : {"self", "pretrained"} or path-like, optional
        Who else says what the images show: the classifier learns these probabilities beside the
        labels. "self": the mean of three classifiers with twice the templates of each layer, which
        are learned first from the same images. "pretrained": a ridge regression on frozen
        activations of EfficientNet-Lite0 (the extra ``visionshare[pretrained]``). Or the file of a
        classifier or of a model in ONNX, of the same classes.
    reject : float, optional
        Share of known pictures that may be refused, such as 0.01: what looks stranger gets
        ``unknown_label``. A tenth of the images, 2,000 at most, calibrates and does not train.
    unknown_label : str, int or float, optional
        Of refused pictures: "unknown" where classes are texts; else it must be given, such as -1.
    random_state : int, RandomState or None, default 0
        Seed. With an integer the classifier is always the same, for any ``n_jobs``, unless
        ``time`` or microseconds are limited: then it depends on the clock.
    n_jobs : int, default -1
        Threads; -1 for all cores.
    cluster : str or distributed.Client, optional
        Dask cluster whose workers learn trials and members, each on one worker, with the same
        results: an address such as "tcp://host:8786", or a client, which cannot be cloned.
    verbose : {0, 1, 2}, default 0
        Whether a line on standard error says after each trial how far the search is, with 2 also
        what was tried.
    pretrained : {"auto", True, False} or path-like, default "auto"
        Whether features of a pretrained network are tried too, on images of up to 224 pixels: with
        "auto" where the extra ``visionshare[pretrained]`` is installed, sides are 16 at least, and
        ``budget`` is None or allows it. A file is another network, in ONNX.
    variants : sequence of {"residual", "strided", "depthwise", "means"}, default ()
        Variants of the best network to try as well, one trial each: residual sums, strides in place
        of pooling cells, depthwise templates, means over the plane.
    optimizer : {"adam", "muon"}, default "adam"
        The optimizer of fine-tuning, see :class:`visionshare.FineTuning`.
    warm_start : bool, default False
        Whether a second ``fit`` learns on: structure and features of the first one stay, and no
        search is made. Give it all images that are to count, including images of new classes.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Of several labels the names of the columns of a table, else their numbers.
    classifier_ : CompactClassifier
        What was learned.
    recipe_ : str or None
        The recipe of what was chosen, as TOML; None where ``features`` is an object.
    search_results_ : dict of lists
        All trials, what was chosen first, then the best, a list for each column:
        ``pandas.DataFrame`` takes it.
    validation_error_ : float
        Error of the chosen proposal on the held-out images, trained on the others for fewer
        epochs. NaN where none could be held out, or it learned on. It is the least of several,
        so that it is a little low; use other images for an honest figure.
    image_shape_ : tuple of int
        Of the images that the classifier sees.
    n_features_in_ : int
        Numbers of an example, where examples are vectors.

    Notes
    -----
    Images are (n, H, W) or (n, H, W, C) of bytes, other whole numbers or floats, or sequences of
    such images of any sizes, or of paths of picture files. The classifier sees bytes: values are
    scaled from the range of the training images. Later images have the same unit: fractions where
    training had bytes, and bytes where it had fractions, are refused; booleans are black and white,
    and 16 bits become bytes where training had those. Pictures of Pillow are read as their files
    are. Copies of an image are held out together. A two-dimensional array is a vector for each
    example; ShareBoost then chooses among its numbers, their products, and Gaussians.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import ImageClassifier
    >>> digits = load_digits()
    >>> few = ImageClassifier(budget=5000, features="small-patches", n_jobs=1)
    >>> few.fit(digits.images[:300], digits.target[:300]).cost_["macs"] <= 5000
    True
    >>> bool(few.score(digits.images[300:600], digits.target[300:600]) > 0.6)
    True
    """

    features: str | FeatureFamily = "auto"
    _: KW_ONLY
    budget: float | Mapping[str, float] | None = None
    time: float | None = None
    size: int | tuple[int, int] | None = None
    color: str | bool = "auto"
    augment: str | bool | Augmentation = "auto"
    class_weight: dict[Any, float] | str | None = None
    teacher: str | os.PathLike[str] | None = None
    reject: float | None = None
    unknown_label: Any = None
    random_state: Any = 0
    n_jobs: int | None = -1
    cluster: Any = None
    pretrained: Any = "auto"
    verbose: int = 0
    variants: Sequence[str] = ()
    optimizer: str = "adam"
    warm_start: bool = False

    def fit(
        self, images: Any, y: Any, sample_weight: Any = None, *,
        unlabeled: Any = None, unknown: Any = None, groups: Any = None,
    ) -> ImageClassifier:  # fmt: skip
        """Choose and learn a classifier.

        Parameters
        ----------
        images : array or sequence
            (n, H, W), (n, H, W, C), or a sequence of images or paths; see the notes of the class.
        y : array-like of shape (n,) or (n, k)
            Classes: numbers, text or booleans. Or several labels of an image, 0 or 1, a column for
            each, as of scikit-learn's ``MultiLabelBinarizer``: for images of layers alone.
        sample_weight : array-like of shape (n,), optional
            What each image counts in learning, 0 or more; trials are compared without weights.
        unlabeled : array or sequence, optional
            More images, of which the teacher alone says what they show.
        unknown : array or sequence, optional
            Pictures of no class, where there are any: they help to refuse others.
        groups : array-like of shape (n,), optional
            Images of one object or burst: trials never compare on a group that they learn.

        Raises
        ------
        InputError
            If a parameter, the images or the labels are not accepted, or nothing keeps within the
            budget.
        BudgetError
            If what was chosen does not fit into the flash once it is learned from all images.
        DataError
            If a picture file cannot be read.
        """
        settings = checked_settings(self)
        start = goes_on_from(self)
        budget = Budget.of(self.budget)
        teacher = teacher_part(self.teacher, self.features, unlabeled)
        jobs = resolve_jobs(self.n_jobs)
        # 1) images of bytes, and labels as numbers
        # What is made for images of their size, or for small cores, sees them as they are.
        enlarged = self.features == "auto" and budget.flash is None
        network = self.pretrained if self.features == "auto" and teacher is None else False
        asked_for(network)
        names = label_names(y)
        answers = self._answers if names is None else several_labels(self, images, y, names)
        y = y if answers is None else answers.rule.numbers(answers.truth)
        rasters, y, intake = self._training(images, y, LEAST_SIDE if enlarged else 1, start)
        if answers is None:
            classes, labels = classes_and_numbers(y)
        else:
            classes = answers.rule.classes
            labels = y
        self.classes_ = classes if names is None else names
        check_class_weight(self.class_weight, self.classes_.tolist())
        # Pictures without any label have a number of their own.
        numbers = tuple(f"{i}" for i in range(max(len(classes), int(labels.max()) + 1)))
        training = ImageSet(rasters, labels.astype(np.int64), numbers, "images")
        counts = None if sample_weight is None else example_weights(sample_weight, labels)
        training = grouped(replace(training, answers=answers, weights=counts), groups)
        refusal = RefusalSettings.of(self.reject, self.unknown_label, unknown, self.classes_)
        seed = seed_of(self.random_state)
        training, images, calibrating = refusal.split(training, images, seed)
        preprocessing = Preprocessing() if intake is None else intake.preprocessing
        weights = weights_of_numbers(self.class_weight, self.classes_.tolist())
        learner = ProposalLearner(Data.of(training), training, seed, jobs, weights, preprocessing)
        if teacher is not None:
            learner = replace(learner, teacher=teacher)
            learner = taught_learner(learner, intake, images, unlabeled, self.classes_.tolist())
        # 2) search, then learn the best from all images; or learn on
        if start is None:
            seen = None
            if intake is not None:
                seen = Seen(images, training.images, intake, self.size is None)
            transfer = transfer_of(network, seen, Budget.of(self.budget, None))
            learned = self._searched(learner, budget, replace(settings, transfer=transfer))
        else:
            learned = learned_on_images(learner, start, self.classes_)
            self.validation_error_ = math.nan
        # 3) the classifier takes images as they were given, and returns their labels
        classifier = replace(
            learned,
            classes=classes,
            exit_rule=None,
            values=None if intake is None else intake.values,
        )
        self.classifier_ = refusal.added_to(classifier, images, calibrating, jobs)
        self.image_shape_ = self.classifier_.image_shape
        return self

    def _training(
        self, images: Any, y: Any, least_side: int, start: CompactClassifier | None = None
    ) -> tuple[np.ndarray, np.ndarray, Intake | None]:
        """Return images of bytes, or vectors; the labels, checked; and how images became bytes."""
        # 1) labels and images of a kind that is known, one label for each
        images = as_array(images)
        y = checked_targets(self, y if y is None else label_array(y))
        intake = None
        if is_vectors(images):
            rasters = checked_table(self, images, reset=True)
        else:
            intake = intake_of(start)
            intake = intake or propose_intake(images, self.size, self.color, least_side)
        check_length(y, len(images))
        # 2) bytes of images
        if intake is not None:
            rasters = intake.apply(images)
            if (rasters == rasters[:1]).all():
                given = f"{len(rasters)} images that are all the same"
                raise InputError("images", given, "images that tell the classes apart")
            # Of a fit to vectors before it.
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self, name):
                    delattr(self, name)
        return rasters, y, intake

    def _searched(
        self, learner: ProposalLearner, budget: Budget, settings: SearchSettings
    ) -> CompactClassifier:
        """Return the classifier that a search chooses, and note what it found."""
        address = self.cluster if isinstance(self.cluster, str) else None
        with cluster_client(scheduler=address) as client:
            settings = replace(settings, client=client or self.cluster)
            choice = choose(learner, budget, settings)
            learned = self._refit(choice, budget, settings.client)
        self.search_results_ = table(choice.trials, choice.best.proposal)
        self.validation_error_ = choice.error
        preprocessing = choice.learner.preprocessing or Preprocessing()
        learned = replace(learned, preprocessing=preprocessing)
        return replace(learned, temperature=choice.best.temperature, answer=choice.best.rule)

    def _refit(self, choice: Choice, budget: Budget, client: Any) -> CompactClassifier:
        """Return the classifier that the best proposal learns from all images."""
        proposal = choice.best.proposal
        features = proposal.features
        _logger.info("chosen: %s", proposal)
        self.recipe_ = None
        if not isinstance(features, Greedy) or isinstance(features.pool, str):
            remarks = [f"Chosen by ImageClassifier: {proposal}."]
            self.recipe_ = toml_text(choice.recipe, remarks)
        (learned,) = choice.learner.learned([proposal], choice.epochs, client)
        classifier = learned.result()
        if isinstance(features, Greedy):
            # From all images other features may be chosen, which cost more.
            images = choice.learner.images.images
            classifier = classifier.at(budget.rounds_or_error(classifier, images))
        return classifier

    # ---- in use

    def decision_function(self, images: Any) -> np.ndarray:
        """Return scores (n, k); for two classes, as in scikit-learn, one per image (n,)."""
        scores = self._scores(images)
        return scores if self._has_labels else flat_scores(scores)

    @property
    def _has_labels(self) -> bool:
        return isinstance(self.classifier_.answer, LabelRule)

    def predict(self, images: Any) -> np.ndarray:
        """Return the class of each image; ``unknown_label`` of those that are refused.

        Of several labels which of them each image has, 0 or 1, (n, k).
        """
        check_is_fitted(self)
        rule = self.classifier_.answer
        if isinstance(rule, LabelRule):
            return rule.has(self.predict_proba(images)).astype(np.int64)
        if self.classifier_.unknown is not None:
            return self.classifier_.predict(images, resolve_jobs(self.n_jobs))
        return predict_labels(self.classes_, self._scores(images))

    def known(self, images: Any) -> np.ndarray:
        """Return the share of known pictures that look as strange as each image, (n,)."""
        check_is_fitted(self)
        return self.classifier_.known(images)

    def score(self, images: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: labels of any type that :meth:`fit` takes.

        Of several labels the share of images all of whose labels are right.
        """
        said = self.predict(images)
        if self._has_labels:
            y = (np.asarray(y) == said).all(axis=1)
            return float(np.average(y, weights=sample_weight))
        return accuracy(y, said, sample_weight)

    def predict_proba(self, images: Any) -> np.ndarray:
        """Return probabilities (n, k), calibrated on held-out training images."""
        scores = self._scores(images)
        return self.classifier_.probabilities(scores)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ImageClassifier:
        """Return a fitted estimator of a classifier file, whoever wrote it.

        Its parameters are the defaults; what was tried in the search is not in the file.

        Raises
        ------
        ClassifierFileError
            If the file is missing, broken, foreign, or of a version this library does not know.

        Examples
        --------
        >>> import tempfile
        >>> images = np.repeat(np.arange(40, dtype=np.uint8), 64).reshape(40, 8, 8)
        >>> model = ImageClassifier("pixels", n_jobs=1).fit(images, np.arange(40) > 20)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/dark.safetensors")
        ...     same = ImageClassifier.load(f"{folder}/dark.safetensors")
        >>> bool((same.predict_proba(images) == model.predict_proba(images)).all())
        True
        """
        classifier = CompactClassifier.load(path)
        if isinstance(classifier.answer, ValueRule):
            raise InputError("path", os.fspath(path), "a file of classes; ImageRegressor reads it")
        loaded = cls()
        loaded._adopt(classifier)
        loaded.classes_ = classifier.classes_
        return loaded

    def to_recipe(self, path: str | os.PathLike[str], source: str | os.PathLike[str]) -> Path:
        """Write what was chosen as a recipe that `visionshare train` runs.

        Parameters
        ----------
        path : path-like
            File ``.toml``.
        source : str or path-like
            Where the images are: a folder of class folders, a file, or a name of the catalog.

        Raises
        ------
        InputError
            If ``features`` was an object, which no recipe can name.
        """
        check_is_fitted(self)
        if self.recipe_ is None:
            raise InputError("features", self.features, "'auto' or the name of a pool")
        return written_recipe(self.recipe_, Path(path), os.fspath(source))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)
        if not hasattr(self, "classifier_"):
            return text
        cost = self.cost_
        parts = [
            f"{len(self.classes_)} classes",
            f"{self.classifier_.n_features} features",
            f"{cost['macs']:,} multiply-accumulates",
            f"{cost['bytes']:,} bytes",
        ]
        if not math.isnan(self.validation_error_):
            parts.append(f"{100 * self.validation_error_:.1f} % held-out error")
        return f"{text}  # {', '.join(parts)}"
