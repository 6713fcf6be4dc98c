"""The last stage: the files of a run."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.durable import write_text
from visionshare.recipes.run import Run
from visionshare.recipes.schema import as_settings
from visionshare.recipes.stages.evaluation import Evaluation
from visionshare.recipes.stages.images import RunImages
from visionshare.resources import peak_memory

__all__ = ["figures_of", "path_table", "write_results"]


def figures_of(
    run: Run, classifier: CompactClassifier, images: RunImages, evaluation: Evaluation
) -> dict[str, Any]:
    """Return the figures of ``metrics.json``."""
    figures: dict[str, Any] = {
        "pipeline": run.recipe.name,
        "train_images": len(images.training),
        "test_images": len(images.test),
        "test_errors": evaluation.errors,
        "test_error_rate": evaluation.error_rate,
        "rounds": len(classifier.path),
        "features": classifier.n_features,
        "parameters": classifier.n_parameters,
        "macs": classifier.macs,
        "nbytes": classifier.nbytes,
        "seconds": dict(run.clock.seconds),
        "peak_memory": peak_memory(),
    }
    if evaluation.early_exit is not None:
        figures["early_exit"] = asdict(evaluation.early_exit)
    return figures


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
    run: Run,
    out: Path,
    classifier: CompactClassifier,
    images: RunImages,
    evaluation: Evaluation,
) -> dict[str, Any]:
    """Write classifier, path, report and figures, each file atomically; return the figures.

    Parameters
    ----------
    run : Run
    out : pathlib.Path
        Folder.
    classifier : CompactClassifier
    images : RunImages
    evaluation : Evaluation
    """
    from visionshare.reports import write_report

    test = images.test
    figures = figures_of(run, classifier, images, evaluation)
    classifier.save(out / "classifier.safetensors")
    write_text(out / "path.csv", path_table(classifier))
    index = {name: i for i, name in enumerate(test.classes)}
    with run.clock("report"):
        write_report(
            out / "report.html",
            classifier,
            images=test.images,
            labels=test.labels,
            predictions=np.array([index[str(name)] for name in evaluation.predicted]),
            classes=test.classes,
            metrics=figures,
            settings=dict(as_settings(run.recipe)),
        )
    figures["seconds"] = dict(run.clock.seconds)
    figures["peak_memory"] = peak_memory()
    write_text(out / "metrics.json", json.dumps(figures, indent=2) + "\n")
    return figures
