"""Trials: proposals trained on some images, here or on a cluster, and compared on others."""

from __future__ import annotations

import json
import logging
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visionshare.answers import LabelRule, Rule
from visionshare.batch.mapping import Mapper, itself, map_here
from visionshare.classifier import CompactClassifier, averaged
from visionshare.datasets import ImageSet, Preprocessing
from visionshare.datasets.sampling import stratified_mask
from visionshare.distributed.mapping import ClusterMap
from visionshare.errors import InputError, MemoryLimitError
from visionshare.generators.base import FeatureFamily
from visionshare.image_classifier.kept_trials import KeptTrials
from visionshare.image_classifier.proposals import Data, Greedy, Proposal
from visionshare.learners.calibration import fit_temperature, with_an_error
from visionshare.machine.progress import stage
from visionshare.recipes import Recipe
from visionshare.recipes.run import TrainingRun
from visionshare.recipes.schema import TeacherPart, as_settings
from visionshare.recipes.stages.images import RunImages
from visionshare.recipes.stages.members import choose_features
from visionshare.recipes.stages.teaching import with_teacher
from visionshare.recipes.stages.tuning import fine_tuned
from visionshare.recipes.training import images_in_memory
from visionshare.scores import softmax

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Trial:
    """What a proposal gave."""

    proposal: Proposal
    #: Fraction of the held-out images that got a wrong class.
    error: float
    #: 1 − the probability of the true class of each: the mean is what trials are compared by. It
    #: varies less than errors do from one part of the images to another.
    doubts: np.ndarray
    #: Temperature that fits the held-out scores best.
    temperature: float
    classifier: CompactClassifier
    #: Whether it keeps within the budget.
    allowed: bool = True
    epochs: int = 0
    seconds: float = 0.0
    #: Seconds of the choice of features, which takes as long for any number of epochs.
    choosing: float = 0.0
    #: What held-out images say of the answers of a classifier without classes.
    rule: Rule | None = None

    @property
    def doubt(self) -> float:
        """Mean of the doubts."""
        return float(self.doubts.mean())

    def is_better(self, best: Trial, margin: float) -> bool:
        """Return whether its doubts are less by so many standard errors of the difference."""
        less = best.doubts - self.doubts
        error = float(less.std()) / np.sqrt(len(less))
        return float(less.mean()) > margin * error


class Learned(NamedTuple):
    """A classifier, or why there is none, and the seconds that it took, in all and of choosing."""

    classifier: CompactClassifier | None
    seconds: float
    choosing: float = 0.0
    # The error's class and arguments: Dask cannot unpickle every error.
    problem: tuple[Any, ...] | None = None

    @property
    def error(self) -> InputError | MemoryLimitError:
        """Why there is no classifier."""
        assert self.problem is not None
        make, arguments = self.problem
        return make(*arguments)

    def result(self) -> CompactClassifier:
        """Return the classifier; raise why there is none."""
        if self.classifier is None:
            raise self.error
        return self.classifier


@dataclass
class ProposalLearner:
    """Learns proposals from some images; workers of a cluster are sent a copy."""

    data: Data
    images: ImageSet
    seed: int = 0
    n_jobs: int = 1
    class_weight: dict[Any, float] | str | None = None
    #: How picture files are prepared, for the recipes.
    preprocessing: Preprocessing | None = None
    #: Limit of flash; classifiers then have few bits.
    max_flash: int | None = None
    #: Teacher part of a recipe; probabilities of a given teacher are in ``images.taught``.
    teacher: TeacherPart | None = None
    #: Pictures that the teacher alone says something of.
    unlabeled: ImageSet | None = None
    _chosen: dict[str, CompactClassifier] = field(default_factory=dict, init=False)
    # Images of one recipe at a time, with what teaches of them: members share a teacher.
    _taught: dict[str, RunImages] = field(default_factory=dict, init=False)
    # A worker has one task at a time, which uses all of its threads.
    _lock: Any = field(default_factory=threading.Lock, init=False)
    # What the workers were sent.
    _sent: Any = field(default=None, init=False)

    def __reduce__(self) -> tuple[Any, ...]:
        given = (self.data, self.images, self.seed, self.n_jobs, self.class_weight)
        others = (self.preprocessing, self.max_flash, self.teacher, self.unlabeled)
        return _received, (*given, *others)

    @property
    def counted(self) -> Data:
        """What is known of the images, those without a class counted: they are learned too."""
        n = 0 if self.unlabeled is None else len(self.unlabeled)
        return replace(self.data, n=self.data.n + n)

    def recipe(self, proposal: Proposal, epochs: int) -> Recipe:
        """Return the recipe of a proposal."""
        recipe = proposal.recipe(
            self.counted,
            epochs=epochs,
            seed=self.seed,
            class_weight=self.class_weight,
            preprocessing=self.preprocessing,
            max_flash=self.max_flash,
        )
        # What is chosen greedily has a loss of labels alone.
        if recipe.fine_tuning is None:
            return recipe
        return recipe.model_copy(update={"teacher": self.teacher})

    def learned(
        self, proposals: Sequence[Proposal], epochs: int, client: Any = None
    ) -> Iterator[Learned]:
        """Yield what is learned of each proposal; members are tasks, here or on a cluster."""
        mapper: Mapper = map_here
        made: Any = self
        if client is not None:
            mapper = ClusterMap(client)
            if self._sent is None:
                threads = min(client.nthreads().values(), default=1)
                self._sent = client.submit(itself, replace(self, n_jobs=threads), pure=False)
            made = self._sent
        tasks = [(p, epochs, number) for p in proposals for number in range(p.members)]
        results = mapper(_learn_member, itself, (made,), tasks)
        for proposal in proposals:
            # Structures are told after each trial, and only to those who ask for them.
            with stage("training"):
                members = [next(results) for _ in range(proposal.members)]
            seconds = sum(member.seconds for member in members)
            choosing = sum(member.choosing for member in members)
            problem = next((m.problem for m in members if m.problem is not None), None)
            classifiers = [m.classifier for m in members if m.classifier is not None]
            whole = averaged(classifiers) if problem is None else None
            yield Learned(whole, seconds, choosing, problem)

    def member(self, proposal: Proposal, epochs: int, number: int) -> Learned:
        """Return a member of a proposal, by its number."""
        with self._lock:
            begun = time.perf_counter()
            features = proposal.features
            if isinstance(features, Greedy) and isinstance(features.pool, FeatureFamily):
                return Learned(self._of_family(features), time.perf_counter() - begun)
            with tempfile.TemporaryDirectory(prefix="visionshare-") as folder:
                recipe = self.recipe(proposal, epochs)
                whole = TrainingRun(recipe, Path(folder), None, self.n_jobs)
                images = self._images_of(whole)
                run = whole.member(number)
                taught = time.perf_counter()
                chosen = self._features_of(run, images)
                choosing = time.perf_counter() - taught
                classifier = fine_tuned(run, chosen, images)
            return Learned(classifier, time.perf_counter() - begun, choosing)

    def _images_of(self, run: TrainingRun) -> RunImages:
        """Return the images of a run, and who teaches: learned now, or before a former member."""
        if run.recipe.teacher is None:
            return images_in_memory(run, self.images)
        key = json.dumps(as_settings(run.recipe), sort_keys=True)
        if key not in self._taught:
            images = images_in_memory(run, self.images, self.unlabeled)
            self._taught.clear()
            self._taught[key] = with_teacher(run, images)
        return self._taught[key]

    def _features_of(self, run: TrainingRun, images: RunImages) -> CompactClassifier:
        """Return the classifier of the chosen features, which proposals of one structure share."""
        settings = as_settings(run.recipe)
        tuning = settings["fine_tuning"] or {}
        parts = [settings["seed"], settings["features"], settings["learner"]]
        teacher = settings["teacher"]
        key = json.dumps([*parts, tuning.get("search_images"), teacher], sort_keys=True)
        if key not in self._chosen:
            self._chosen[key] = choose_features(run, images)
        return self._chosen[key]

    def _of_family(self, features: Greedy) -> CompactClassifier:
        """Return the classifier of a family's features, chosen greedily."""
        from sklearn.base import clone

        from visionshare.columns import ArrayColumns
        from visionshare.learners import ShareBoost
        from visionshare.learners.class_weights import by_number

        images = self.images
        family = clone(features.pool, safe=False).fit(images.images, images.labels)
        columns = ArrayColumns.from_family(family, images.images, "float32", self.n_jobs)
        learner = ShareBoost(
            min(features.rounds, family.n_features_),
            criterion="orthogonal",
            class_weight=by_number(self.class_weight, images.classes),
            n_jobs=self.n_jobs,
        )
        learner.fit(columns, images.labels, sample_weight=images.weights)
        return learner.to_classifier(family, dict(enumerate(images.classes)))


def _received(data: Data, images: ImageSet, *others: Any) -> ProposalLearner:
    """Return a learner that was sent; kernels of read-only arrays would be compiled once more."""
    return ProposalLearner(data, replace(images, images=images.images.copy()), *others)


def _learn_member(learner: ProposalLearner, task: tuple[Proposal, int, int]) -> Learned:
    """Return a member of a proposal, or why it cannot be learned: the task of a worker."""
    begun = time.perf_counter()
    try:
        return learner.member(*task)
    except (InputError, MemoryLimitError) as problem:
        made = tuple(problem.__reduce__()[:2])
        return Learned(None, time.perf_counter() - begun, problem=made)


class Trials:
    """Trials on one pair of parts of the training images."""

    def __init__(
        self,
        learner: ProposalLearner,
        held_out: ImageSet,
        client: Any = None,
        kept: KeptTrials | None = None,
    ) -> None:
        self.learner = learner
        self.held_out = held_out
        self._client = client
        self.kept = kept

    @property
    def n(self) -> int:
        """Images that trials learn from."""
        return len(self.learner.images)

    def fewer(self, most: int) -> Trials:
        """Return trials on so many of the images at most, compared on the same ones."""
        learner = self.learner
        unlabeled = learner.unlabeled
        if unlabeled is not None and len(unlabeled) > most:
            rows = np.linspace(0, len(unlabeled) - 1, most).astype(np.int64)
            learner = replace(learner, unlabeled=unlabeled.subset(rows))
        if self.n > most:
            mask = stratified_mask(learner.images.labels, most / self.n, learner.seed)
            images = learner.images.subset(np.flatnonzero(mask))
            data = replace(learner.data, n=len(images))
            learner = replace(learner, data=data, images=images)
        if learner is self.learner:
            return self
        return Trials(learner, self.held_out, self._client, self.kept)

    def taught(self, teacher: TeacherPart | None, unlabeled: ImageSet | None) -> Trials:
        """Return trials whose proposals learn from a teacher too."""
        learner = replace(self.learner, teacher=teacher, unlabeled=unlabeled)
        return Trials(learner, self.held_out, self._client, self.kept)

    def run(
        self, proposals: Sequence[Proposal], epochs: int
    ) -> Iterator[Trial | InputError | MemoryLimitError]:
        """Yield the trial of each proposal, or why there is none."""
        # 1) what was kept
        kept = [self._read(proposal, epochs) for proposal in proposals]
        missing = [p for p, found in zip(proposals, kept, strict=True) if found is None]
        learned = self.learner.learned(missing, epochs, self._client)
        for proposal, found in zip(proposals, kept, strict=True):
            # 2) learn what was not
            if found is None:
                found = next(learned)
                self._write(proposal, epochs, found)
            if found.classifier is None:
                yield found.error
                continue
            # 3) compare
            trial = self.measure(proposal, found.classifier)
            figures = (100 * trial.error, trial.classifier.macs, found.seconds)
            _logger.info("%s: %.2f %% error, %d multiply-accumulates, %.1f s", proposal, *figures)
            yield replace(trial, epochs=epochs, seconds=found.seconds, choosing=found.choosing)

    def learn(self, proposal: Proposal, epochs: int) -> Learned:
        """Return what is learned of a proposal, without a comparison."""
        return next(self.learner.learned([proposal], epochs, self._client))

    def measure(self, proposal: Proposal, classifier: CompactClassifier) -> Trial:
        """Return what a classifier does with the held-out images."""
        scores = classifier.decision_function(self.held_out.images, self.learner.n_jobs)
        truth = self.held_out.labels.astype(np.int64)
        error = float(np.mean(np.argmax(scores, axis=1) != truth))
        answers = self.held_out.answers
        if answers is not None and isinstance(answers.rule, LabelRule):
            temperature = 1.0
        else:
            temperature, doubts = doubts_of(scores, truth)
        if answers is not None:
            temperature, error, doubts = answers.rule.judged(scores, temperature, answers.truth)
            rule = answers.rule.fitted(scores, answers.truth)
            return Trial(proposal, error, doubts, temperature, classifier, rule=rule)
        return Trial(proposal, error, doubts, temperature, classifier)

    def _read(self, proposal: Proposal, epochs: int) -> Learned | None:
        """Return what was kept of a proposal; pools that are objects are never kept."""
        if self.kept is None or _is_of_object(proposal):
            return None
        found = self.kept.read(self.learner.recipe(proposal, epochs), self.n)
        return None if found is None else Learned(*found)

    def _write(self, proposal: Proposal, epochs: int, learned: Learned) -> None:
        if self.kept is None or learned.classifier is None or _is_of_object(proposal):
            return
        recipe = self.learner.recipe(proposal, epochs)
        self.kept.write(recipe, self.n, learned.classifier, learned.seconds)


def doubts_of(scores: np.ndarray, truth: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the temperature that fits scores best, and 1 − the probabilities of the classes."""
    counted, true = with_an_error(scores, truth)
    temperature = fit_temperature(counted, true, np.ones(len(true)))
    return temperature, 1 - softmax(scores, temperature)[np.arange(len(truth)), truth]


def _is_of_object(proposal: Proposal) -> bool:
    features = proposal.features
    return isinstance(features, Greedy) and isinstance(features.pool, FeatureFamily)


def table(trials: Sequence[Trial], chosen: Proposal | None = None) -> dict[str, list[Any]]:
    """Return trials as columns: one list for each figure, what was chosen first, then the best."""

    def rank(trial: Trial) -> tuple[bool, bool, int, float]:
        return trial.proposal != chosen, not trial.allowed, -trial.epochs, trial.doubt

    ranked = sorted(trials, key=rank)
    return {
        "proposal": [str(trial.proposal) for trial in ranked],
        "error": [trial.error for trial in ranked],
        "doubt": [trial.doubt for trial in ranked],
        "macs": [trial.classifier.macs for trial in ranked],
        "parameters": [trial.classifier.n_parameters for trial in ranked],
        "bytes": [trial.classifier.nbytes for trial in ranked],
        "epochs": [trial.epochs for trial in ranked],
        "seconds": [trial.seconds for trial in ranked],
        "allowed": [trial.allowed for trial in ranked],
        "chosen": [trial is ranked[0] and trial.proposal == chosen for trial in ranked],
    }
