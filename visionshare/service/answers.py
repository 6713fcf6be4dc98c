"""What the service answers to a picture: a prediction, or an explanation of one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel

from visionshare.answers import ValueRule
from visionshare.batch.explanation import explain_picture
from visionshare.batch.pictures import read_picture
from visionshare.class_labels import class_names
from visionshare.classifier import CompactClassifier, EarlyExit, explain
from visionshare.datasets.decoding import decode_image
from visionshare.datasets.intake import as_rasters
from visionshare.datasets.opening import OpenedPicture
from visionshare.errors import InputError
from visionshare.service.bodies import Refusal

if TYPE_CHECKING:
    from visionshare.reading import MeterReader


_Numbers = dict[str, float | None]


class Prediction(BaseModel):
    """The answer to a picture.

    A classifier with an exit rule says at which stage it stopped, from 1; one that refuses pictures
    of no class says the share of ``known`` pictures that look as strange, which is the probability
    of a refused one. One that says values says the ``value``, and the likeliest level; one
    of several labels all of them as ``label``, "cat;dog", and the probability of the likeliest.
    ``raster`` is the preprocessed image where it is asked for.
    """

    label: str
    probability: float | None
    probabilities: _Numbers
    macs: int
    stage: int | None = None
    known: float | None = None
    value: float | None = None
    raster: list[Any] | None = None


class ExplainedFeature(BaseModel):
    """What one feature said."""

    feature: str
    value: float | None
    evidence: _Numbers
    box: list[float]
    everywhere: bool


class ExplanationAnswer(BaseModel):
    """The answer to a picture that is to be explained.

    ``evidence`` is value × weight, relative to the mean of the classes; that of the features,
    of ``others`` and the ``base`` add up to ``score``. Boxes are first row, last row (exclusive),
    first and last column of a picture of ``size``, height and width. Early exit is not followed.
    """

    label: str
    explained: str
    rival: str
    size: list[int]
    features: list[ExplainedFeature]
    others: _Numbers
    base: _Numbers
    score: _Numbers


class MeterAnswer(BaseModel):
    """The reading of a frame: a number as text, or null and the reason.

    ``places`` are the positions of the wheels and pointers, from 0 to 10.
    """

    value: str | None
    confidence: float
    reason: str
    places: list[float]


class Served:
    """A classifier whose kernels are compiled, and whose costs are counted."""

    def __init__(self, classifier: CompactClassifier) -> None:
        self.classifier = classifier
        self.names = class_names(classifier.classes_)
        # Counting takes longer than classifying.
        self.macs = classifier.macs
        self.early = None if classifier.exit_rule is None else EarlyExit(classifier)
        classifier.decision_function(np.zeros(classifier.image_shape, np.uint8))

    def classify(self, images: np.ndarray) -> list[Prediction]:
        """Return an answer for each image."""
        rule = self.classifier.unknown
        if self.early is None:
            scores, shares = self.classifier.judged(images)
            stages: list[int | None] = [None] * len(scores)
            macs = [self.macs] * len(scores)
        else:
            scores, stops = self.early.run(images)
            shares = None if rule is None else self.classifier.known(as_rasters(images), scores)
            stages = (stops + 1).tolist()
            macs = self.early.costs[stops].tolist()
        best = np.argmax(scores, axis=1).tolist()
        found = self.classifier.probabilities(scores)
        rows = found.tolist()
        answer = self.classifier.answer
        said = None if answer is None else answer.said(found).tolist()
        values = said if isinstance(answer, ValueRule) else None
        known = None if shares is None else shares.tolist()
        answers = []
        for i, row in enumerate(rows):
            label = self.names[best[i]]
            probabilities = dict(zip(self.names, map(_finite, row), strict=True))
            probability = probabilities[label]
            share = None if known is None else known[i]
            if said is not None and values is None:
                label = said[i]
            if rule is not None and share is not None and share < rule.reject:
                label = str(rule.label)
                probability = _finite(share)
            answers.append(
                Prediction(
                    label=label,
                    probability=probability,
                    probabilities=probabilities,
                    macs=macs[i],
                    stage=stages[i],
                    known=None if share is None else _finite(share),
                    value=None if values is None else _finite(values[i]),
                )
            )
        return answers


def metered(
    _: Served,
    source: np.ndarray | OpenedPicture,
    reader: MeterReader,
    previous: str | None,
    hours: float | None,
) -> MeterAnswer:
    """Return the reading of a frame."""
    if not isinstance(source, OpenedPicture):
        raise Refusal(415, "unsupported_type", "a meter is read from a picture, not from pixels")
    reading = reader.read(decode_image(source, "color"), previous, hours)
    return MeterAnswer(
        value=None if reading.value is None else reading.text,
        confidence=reading.confidence,
        reason=reading.reason,
        places=list(reading.places),
    )


def predicted(served: Served, source: np.ndarray | OpenedPicture, with_raster: bool) -> Prediction:
    """Return the answer to an image, or to a picture that is preprocessed first."""
    if isinstance(source, OpenedPicture):
        source = read_picture(served.classifier, source)
    answer = served.classify(source[None])[0]
    if with_raster:
        answer.raster = source.tolist()
    return answer


def explained(
    served: Served, source: np.ndarray | OpenedPicture, name: str | None, top: int
) -> ExplanationAnswer:
    """Return the strongest features for or against a class, and what they say of its rival."""
    if isinstance(source, np.ndarray):
        said = explain(served.classifier, source)
    else:
        said = explain_picture(served.classifier, source).explanation
    try:
        k = said.class_index(name)
    except InputError as error:
        raise Refusal(422, "invalid_request", str(error)) from None
    rival = said.rival(k)
    names = [served.names[k], served.names[rival]]
    evidence = said.evidence[[k, rival]]
    base = said.base_evidence[[k, rival]]
    chosen = said.top_features(k, top)

    def by_name(values: np.ndarray) -> _Numbers:
        return dict(zip(names, map(_finite, values.tolist()), strict=True))

    features = [
        ExplainedFeature(
            feature=f"{said.families[j]} {said.numbers[j]}",
            value=_finite(float(said.values[j])),
            evidence=by_name(evidence[:, j]),
            box=said.boxes[j].round(2).tolist(),
            everywhere=bool(said.everywhere[j]),
        )
        for j in chosen.tolist()
    ]
    total = evidence.sum(axis=1)
    return ExplanationAnswer(
        label=str(said.label),
        explained=names[0],
        rival=names[1],
        size=list(said.size),
        features=features,
        others=by_name(total - evidence[:, chosen].sum(axis=1)),
        base=by_name(base),
        score=by_name(total + base),
    )


def _finite(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
