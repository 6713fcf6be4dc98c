"""The last stage: the files of a run."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.answers import ValueRule
from visionshare.classifier import CompactClassifier
from visionshare.datasets.intake import as_rasters
from visionshare.datasets.pictures.splits import GIVEN
from visionshare.files.durable import write_text
from visionshare.machine.system import peak_memory
from visionshare.recipes.folder import MEASURED, SPLIT
from visionshare.recipes.run import TrainingRun
from visionshare.recipes.schema import as_settings
from visionshare.recipes.stages.evaluation import Evaluation, answer_figures
from visionshare.recipes.stages.images import RunImages
from visionshare.recipes.stages.splitting import split_text


def figures_of(
    run: TrainingRun,
    classifier: CompactClassifier,
    images: RunImages,
    evaluation: Evaluation,
    is_refit: bool = False,
) -> dict[str, Any]:
    """Return the figures of ``metrics.json``."""
    figures: dict[str, Any] = {
        "pipeline": run.recipe.name,
        "train_images": len(images.pictures),
        "test_images": len(images.test),
        "test_origin": images.test_origin,
        "test_errors": evaluation.errors,
        "test_error_rate": evaluation.error_rate,
        "rounds": len(classifier.path),
        "features": classifier.n_features,
        "parameters": classifier.n_parameters,
        "macs": classifier.macs,
        "nbytes": classifier.nbytes,
        **_used(run),
    }
    answers = answer_figures(evaluation)
    if answers:
        figures |= {f"test_{name}": figure for name, figure in answers.items()}
    elif len(images.test):
        counts = np.bincount(images.test.labels)
        figures["majority_class"] = images.test.classes[int(counts.argmax())]
        figures["majority_error"] = 1 - float(counts.max()) / len(images.test)
    if is_refit:
        figures["refit_images"] = images.n_originals + len(images.test)
    if evaluation.refused is not None:
        figures["test_refused"] = evaluation.refused
    if run.trials:
        figures["trials"] = dict(run.trials)
    if run.curves:
        figures["epochs"] = {
            " ".join(folder.relative_to(run.work).parts) or "training": _plain(curve)
            for folder, curve in run.curves.items()
        }
    if images.notes:
        figures["notes"] = list(images.notes)
    if evaluation.early_exit is not None:
        figures["early_exit"] = asdict(evaluation.early_exit)
    return figures


def _plain(curve: list[tuple[float, float, float]]) -> list[list[float | None]]:
    """Return the figures of epochs as JSON can hold them."""
    return [[None if math.isnan(x) else round(x, 6) for x in epoch] for epoch in curve]


def _used(run: TrainingRun) -> dict[str, Any]:
    """Return what a run has used so far of the machine."""
    return {
        "seconds": dict(run.clock.seconds),
        "processor_seconds": dict(run.clock.processor_seconds),
        "peak_memory": peak_memory(),
    }


def path_table(classifier: CompactClassifier) -> str:
    """Return the learning path as comma-separated values, a row per step."""
    names = ["round", "feature", "n_features", "score", "loss", "train_error"]
    names += ["validation_error", "test_error", "seconds", "macs"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for step in classifier.path:
        row = [getattr(step, name) for name in names]
        row[1] = " ".join(map(str, step.feature))
        writer.writerow(["" if value is None else value for value in row])
    return text.getvalue()


def write_results(
    run: TrainingRun,
    out: Path,
    classifier: CompactClassifier,
    images: RunImages,
    evaluation: Evaluation,
    measured: CompactClassifier | None = None,
) -> dict[str, Any]:
    """Write classifier, card, path, report and figures, each file atomically; return figures."""
    # After a refit the evaluation is that of another classifier, the measured one.
    figures = figures_of(run, classifier, images, evaluation, measured is not None)
    _write_for_learning_on(out, images, measured)
    measured = measured or classifier
    classifier.save(out / "classifier.safetensors", card=figures)
    write_text(out / "path.csv", path_table(measured))
    with run.clock("report"):
        _write_report(run, out, classifier, measured, images, evaluation, figures)
    figures |= _used(run)
    write_text(out / "metrics.json", json.dumps(figures, indent=2) + "\n")
    return figures


def _write_for_learning_on(
    out: Path, images: RunImages, measured: CompactClassifier | None
) -> None:
    """Write which pictures trained and tested, and who was tested where another is written."""
    for name in (SPLIT, MEASURED):
        (out / name).unlink(missing_ok=True)
    if images.stored is None and images.test_origin != GIVEN:
        known = images.originals
        if images.calibrating is not None:
            known = np.concatenate([known, images.calibrating.images])
        write_text(out / SPLIT, split_text(known, images.test.images))
        if measured is not None:
            measured.save(out / MEASURED)


def _write_report(
    run: TrainingRun,
    out: Path,
    classifier: CompactClassifier,
    measured: CompactClassifier,
    images: RunImages,
    evaluation: Evaluation,
    figures: dict[str, Any],
) -> None:
    from visionshare.reports import Results, ValueResults, write_report

    test = images.test
    training = images.training
    labels = None if training.answers is not None else training.labels[: images.n_originals]
    results = None
    values = None
    if len(test) and test.answers is not None and isinstance(test.answers.rule, ValueRule):
        compared = (test.answers.truth, evaluation.predicted, test.answers.rule)
        values = ValueResults(test.images, *compared, test.names)
    elif len(test) and test.answers is None:
        truth = np.asarray(test.classes)[test.labels]
        described = (test.names, images.test_origin, test.name)
        results = Results.of(measured, as_rasters(test.images), truth, run.jobs, *described)
    write_report(
        out / "report.html",
        classifier,
        results,
        metrics=figures,
        settings=as_settings(run.recipe),
        changed=as_settings(run.recipe, exclude_defaults=True),
        examples=images.originals,
        labels=labels,
        measured=measured,
        values=values,
    )
