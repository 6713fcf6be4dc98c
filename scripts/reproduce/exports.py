"""Exports against Python: scores and labels of every family, and a trained classifier's costs.

A classifier of each family is computed on MNIST's 10 000 test images by Python, by its C, by
onnxruntime and by ONNX's reference. With ``--trained`` a trained one is measured too: its size
in flash and in memory, what whole numbers cost in errors, and where its early exit stops.

    visionshare train mnist-early --data DIR
    python -m scripts.reproduce.exports --data DIR --trained out/mnist-early/classifier.safetensors
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scripts.reproduce.results import arguments, keep_runs, render, stopwatch, table, write_page
from visionshare import (
    CompactClassifier,
    Deslant,
    Features,
    GaborBank,
    KernelAnchors,
    Monomials,
    Network,
    PatchTemplates,
    Pixels,
    Products,
    RandomFourier,
    SourceClassifiers,
    Stumps,
    UnionOfFamilies,
    load,
)
from visionshare.classifier import EarlyExit
from visionshare.datasets import ImageSet, load_images
from visionshare.export import compile_classifier, object_size, onnx_program, run_onnx
from visionshare.generators.lbp import LocalBinaryPatterns
from visionshare.machine.resources import thread_limit

TRAINING, FEATURES, BATCH = 5000, 60, 500
# Of MNIST images whose pixels have variance 1, distances are about 35.
FAMILIES: dict[str, Callable[[], Any]] = {
    "pixels": Pixels,
    "patches": lambda: PatchTemplates(7, 200, n_patches=10_000),
    "Gabor filters": lambda: GaborBank(60, sigmas=(0.5, 2.0), phases=True),
    "Fourier maps": lambda: RandomFourier(30, bandwidths=(30.0, 60.0)),
    "anchors, linear": lambda: KernelAnchors(n_anchors=10, n_radii=3, n_components=10),
    "anchors, Gaussian": lambda: KernelAnchors("gaussian", n_anchors=60, n_radii=2),
    "stumps": lambda: Stumps(3),
    "products": Products,
    "monomials": lambda: Monomials(
        RandomFourier(20, bandwidths=(40.0,)), [(i, (7 * i + 3) % 40) for i in range(40)]
    ),
    "local binary patterns": lambda: LocalBinaryPatterns("uniform"),
    "deslanted": lambda: Network([Deslant(), Features(PatchTemplates(7, 20, n_patches=5000))]),
    "union": lambda: UnionOfFamilies(
        [PatchTemplates(7, 20, n_patches=5000), Stumps(1), RandomFourier(10, bandwidths=(40.0,))]
    ),
}


class Parity(NamedTuple):
    """Largest difference of scores, as a fraction of the largest score, and labels that differ."""

    difference: float
    labels: int


def classifiers(train: ImageSet) -> Iterator[tuple[str, CompactClassifier]]:
    """Yield a classifier of each family: features drawn at random, weights learned."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    images, y, made = train.images[:TRAINING], train.labels[:TRAINING], []

    def learned(family: Any) -> CompactClassifier:
        drawn = np.random.default_rng(0).permutation(family.n_features_)[:FEATURES]
        chosen = family.take(drawn)
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=3000))
        model.fit(chosen.transform(images), y)
        scaler, linear = model[0], model[1]
        weights = linear.coef_ / scaler.scale_
        intercept = linear.intercept_ - weights @ scaler.mean_
        return CompactClassifier(chosen, weights, intercept, np.arange(10))

    for name, maker in FAMILIES.items():
        made.append(learned(maker().fit(images)))
        yield name, made[-1]
    sources = [made[list(FAMILIES).index(name)] for name in ("patches", "stumps")]
    yield "source classifiers", learned(SourceClassifiers(sources).fit(images))


def ways(model: CompactClassifier) -> Iterator[tuple[str, Callable[[np.ndarray], np.ndarray]]]:
    """Yield each way to compute the scores outside Python's own."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    program = onnx_program(model)
    network = onnx.load_from_string(program.content)
    onnx.checker.check_model(network, full_check=True)
    reference = ReferenceEvaluator(network)
    yield "C", compile_classifier(model).decision_function
    yield "onnxruntime", lambda images: run_onnx(program, images)[2]
    yield "onnx.reference", lambda images: reference.run(None, {"images": images})[2]


def compare(model: CompactClassifier, images: np.ndarray, count: int) -> list[Parity]:
    """Return how far each way is from Python on the images."""
    tested = images[:count]
    expected = model.decision_function(tested)
    largest, result = np.abs(expected).max(), []
    for _, scores_of in ways(model):
        parts = [scores_of(tested[i : i + BATCH]) for i in range(0, count, BATCH)]
        scores = np.concatenate(parts)
        differ = int(np.sum(np.argmax(scores, axis=1) != np.argmax(expected, axis=1)))
        result.append(Parity(float(np.abs(scores - expected).max() / largest), differ))
    return result


def costs(file: Path, test: ImageSet) -> tuple[str, dict[str, Any]]:
    """Return the page's part about what a trained classifier costs in C, and its figures."""
    model = load(file)
    rows: list[list[str]] = []
    figures: dict[str, Any] = {"features": model.n_features, "macs": model.macs, "in C": rows}
    truth = test.labels.astype(model.classes_.dtype)
    for quantize in ("none", "int8", "int16"):
        compiled = compile_classifier(model, quantize=quantize)
        errors = int(np.sum(compiled.predict(test.images) != truth))
        row = [quantize, f"{100 * errors / len(test):.2f}"]
        if model.exit_rule is not None:
            stopping = compile_classifier(model, quantize=quantize, early_exit=True)
            wrong = int(np.sum(stopping.predict(test.images) != truth))
            row.append(f"{100 * wrong / len(test):.2f}")
        size = object_size(compiled.program)
        rows.append(
            [*row, "unknown" if size is None else f"{size[0]:,}", f"{compiled.program.ram:,}"]
        )
    header, early_exit = ["tables", "error, %"], ""
    if model.exit_rule is not None:
        header.append("error with early exit, %")
        early = EarlyExit(model).measure(test.images, truth)
        figures["early exit"] = asdict(early)
        early_exit = render(
            "exports/early-exit",
            error=f"{100 * early.errors / len(test):.2f}",
            average_macs=f"{early.average_macs:,.0f}",
            percent=f"{100 * early.average_macs / model.macs:.1f}",
            most_macs=f"{early.max_macs:,}",
        )
    text = render(
        "exports/trained",
        n_features=model.n_features,
        macs=f"{model.macs:,}",
        n_test=len(test),
        costs=table([*header, "bytes of flash", "bytes of RAM"], rows),
        early_exit=early_exit,
    )
    return text, figures


def main() -> None:
    """Compare all families, measure the trained classifier and write the page."""
    parser = arguments(__doc__)
    parser.add_argument("--trained", type=Path, help="a trained classifier of MNIST")
    options = parser.parse_args()
    train, test = (load_images("mnist", split, options.data) for split in ("train", "test"))
    count, rows = 500 if options.quick else len(test), []
    with thread_limit(options.jobs):
        for name, model in classifiers(train):
            with stopwatch() as seconds:
                parities = compare(model, test.images, count)
            wrong = np.mean(model.predict(test.images[:count]) != test.labels[:count])
            rows.append([name, model.n_features, f"{100 * wrong:.1f}"])
            rows[-1] += [f"{p.difference:.1e}; {p.labels}" for p in parities]
            print(*rows[-1], f"{seconds[0]:.0f} s", flush=True)
    trained, figures = ("", {}) if options.trained is None else costs(options.trained, test)
    header = ["family", "features", "error, %", "C", "onnxruntime", "onnx.reference"]
    keep_runs(options.out, "exports", {"families": rows, "trained": figures})
    write_page(
        options.out,
        "exports",
        n_features=FEATURES,
        n_train=TRAINING,
        n_test=count,
        parity=table(header, rows),
        trained=trained,
    )


if __name__ == "__main__":
    main()
