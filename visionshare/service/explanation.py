"""Explanations that the service gives: the strongest features of a picture, and where they are."""

from __future__ import annotations

import math
from typing import Any

from pydantic import BaseModel

from visionshare.classifier import Explanation
from visionshare.errors import InputError
from visionshare.service.bodies import Refusal

__all__ = ["ExplainedFeature", "ExplanationAnswer", "explanation_answer"]

_Sums = dict[str, float | None]


class ExplainedFeature(BaseModel):
    """What one feature said."""

    feature: str
    value: float | None
    evidence: _Sums
    box: list[float]
    everywhere: bool


class ExplanationAnswer(BaseModel):
    """The answer to a picture that is to be explained."""

    label: str
    explained: str
    rival: str
    size: list[int]
    features: list[ExplainedFeature]
    others: _Sums
    base: _Sums
    score: _Sums


def explanation_answer(said: Explanation, name: str | None, top: int) -> ExplanationAnswer:
    """Return the strongest features for or against a class, with its strongest rival."""
    try:
        k = said.class_index(name)
    except InputError as error:
        raise Refusal(422, "invalid_request", str(error)) from None
    rival = next(c for c in said.scores.argsort()[::-1].tolist() if c != k)
    names = [str(said.classes[c]) for c in (k, rival)]
    evidence, base = said.evidence[[k, rival]], said.base_evidence[[k, rival]]
    chosen = said.top_features(k, top)

    def sums(values: Any) -> _Sums:
        return dict(zip(names, map(_finite, values.tolist()), strict=True))

    features = [
        ExplainedFeature(
            feature=f"{said.families[j]} {said.numbers[j]}",
            value=_finite(float(said.values[j])),
            evidence=sums(evidence[:, j]),
            box=[round(edge, 2) for edge in said.boxes[j].tolist()],
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
        others=sums(total - evidence[:, chosen].sum(axis=1)),
        base=sums(base),
        score=sums(total + base),
    )


def _finite(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
