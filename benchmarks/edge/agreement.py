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
    path: Path, set_name: str, data: Path, targets: Sequence[str], emulated: int
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
    emulated : int
        Test images on each core, evenly drawn where there are more; all others take them all.

    Raises
    ------
    InputError
        If the classifier computes in floats, whose last bits are a machine's own.
    """
    model = load(path)
    program = c_program(model)
    if program.reference is None:
        raise InputError("--agree", str(path), "a classifier whose C is of whole numbers")
    images, _ = classifier_images(model, set_name, data, "test")
    few = np.linspace(0, len(images) - 1, min(emulated, len(images))).astype(np.int64)
    expected = program.reference(images)
    ways = []
    for name, on_core, compute in _ways(model, targets):
        chosen = few if on_core else np.arange(len(images))
        labels, scores = compute(images[chosen])
        ways.append(
            {
                "name": name,
                "images": len(chosen),
                "labels": int(np.count_nonzero(labels != expected[chosen].argmax(axis=1))),
                "scores": int(np.count_nonzero(scores != expected[chosen])),
            }
        )
    return {"name": classifier_name(path), "ways": ways}


_Compute = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def _ways(model: CompactClassifier, targets: Sequence[str]) -> Iterator[tuple[str, bool, _Compute]]:
    """Yield names, whether a core is emulated, and functions of images: labels and scores."""
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
        yield "Python", False, python
        yield "onnxruntime", False, onnx
    yield "C here", False, lambda images: native_scores(sources, images)
    yield "C in vectors", False, vectors
    for name in targets:
        target = find_target(name)

        def emulated(images: np.ndarray, target: Any = target) -> tuple[np.ndarray, np.ndarray]:
            return classify_on_core(sources, target, images, "size")

        yield f"C, {name}, emulated", True, emulated


def _labeled(scores: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and whole scores."""
    whole = np.rint(scores.astype(np.float64) / scale).astype(np.int64)
    return whole.argmax(axis=1), whole
