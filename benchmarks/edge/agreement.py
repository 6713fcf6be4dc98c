"""Labels and scores of one classifier from Python, C and ONNX, compared one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.edge.native import native_scores
from benchmarks.edge.ours import classifier_images, classifier_name
from visionshare import CompactClassifier, load
from visionshare.errors import InputError
from visionshare.export import c_program, compile_classifier, onnx_program, run_onnx
from visionshare.export.targets import classify_on_core, device_sources, find_target

__all__ = ["agreement"]


def agreement(
    path: Path, set_name: str, data: Path, targets: Sequence[str], count: int
) -> dict[str, Any]:
    """Return how many labels and scores differ from Python's, for each way to compute them.

    Parameters
    ----------
    path : Path
        A classifier in whole numbers.
    set_name : str
    data : Path
    targets : sequence of str
        Cores that are emulated, without counting.
    count : int
        Of test images, evenly drawn where there are more.

    Raises
    ------
    InputError
        If the classifier computes in floats, whose last bits are a machine's own.
    """
    model = load(path)
    images, _ = classifier_images(model, set_name, data, "test")
    chosen = images[np.linspace(0, len(images) - 1, min(count, len(images))).astype(np.int64)]
    program = c_program(model)
    if program.reference is None:
        raise InputError("--agree", str(path), "a classifier whose C is of whole numbers")
    expected = program.reference(chosen)
    ways = []
    for name, compute in _ways(model, targets):
        labels, scores = compute(chosen)
        ways.append(
            {
                "name": name,
                "labels": int(np.count_nonzero(labels != expected.argmax(axis=1))),
                "scores": int(np.count_nonzero(scores != expected)),
            }
        )
    return {"name": classifier_name(path), "images": len(chosen), "ways": ways}


_Compute = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def _ways(model: CompactClassifier, targets: Sequence[str]) -> Iterator[tuple[str, _Compute]]:
    """Yield names, and functions that return labels and scores of images."""
    program = c_program(model)
    sources = device_sources(model, program)

    def python(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _labeled(model.decision_function(images), program.score_scale)

    def vectors(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _labeled(compile_classifier(model).decision_function(images), program.score_scale)

    def onnx(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        made = run_onnx(onnx_program(model), images)
        position = {str(name): i for i, name in enumerate(model.classes_)}
        labels = np.array([position[str(label)] for label in made.labels])
        return labels, _labeled(made.scores, program.score_scale)[1]

    if model.family.in_whole_numbers:
        yield "Python, the classifier's own scores", python
        yield "ONNX, onnxruntime", onnx
    yield "C on this machine", lambda images: native_scores(sources, images)
    yield "C in vectors of bytes on this machine", vectors
    for name in targets:
        target = find_target(name)

        def emulated(images: np.ndarray, target: Any = target) -> tuple[np.ndarray, np.ndarray]:
            return classify_on_core(sources, target, images, "size")

        yield f"C, {name}, emulated", emulated


def _labeled(scores: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and whole scores."""
    whole = np.rint(scores.astype(np.float64) / scale).astype(np.int64)
    return whole.argmax(axis=1), whole
