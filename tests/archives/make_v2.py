"""Writes the samples of version 2: a classifier of every family and of every nesting of layers.

Run from the root of the last library whose networks were families inside families:
python tests/archives/make_v2.py FOLDER. A later one cannot run it.
"""

import sys
from pathlib import Path


def main(folder: Path) -> None:
    """Write one classifier file per sample, and ``answers.npz`` with its images and scores."""
    # Here, so that tests that look at all modules do not import what is gone.
    import numpy as np

    from visionshare.export import c_program, onnx_program

    folder.mkdir(parents=True, exist_ok=True)
    answers = {}
    for name, (classifier, images) in _samples().items():
        classifier.save(folder / f"{name}.safetensors")
        answers[f"{name}-scores"] = classifier.decision_function(images)
        answers[f"{name}-macs"] = np.int64(classifier.macs)
        answers[f"{name}-exports"] = np.array([
            _accepts(classifier, export) for export in (c_program, onnx_program)
        ])  # fmt: skip
    for color, size, as_float in ((False, 8, False), (True, 8, False), (False, 8, True)):
        key = _images_key(color, size, as_float)
        answers[key] = _images(color, size, as_float)[:_ANSWERED]
    np.savez_compressed(folder / "answers.npz", **answers)


_ANSWERED = 60


def _accepts(classifier, export):
    """Return whether a classifier can be exported so."""
    from visionshare.errors import VisionshareError

    try:
        export(classifier)
    except VisionshareError:
        return False
    return True


def _images_key(color, size, as_float):
    return f"images-{'color' if color else 'gray'}-{size}-{'float' if as_float else 'bytes'}"


def _images(color, size, as_float):
    import numpy as np
    from sklearn.datasets import load_digits

    images = (load_digits().images[:300] * 15).astype(np.uint8)
    # The pictures that are asked come first: no classifier was fitted to another order.
    if color:
        images = np.stack([images, images[:, ::-1], images[:, :, ::-1]], axis=-1)
    return images.astype(np.float32) / 255 if as_float else images


def _families():
    """Return unfitted families by name: every layer alone, and every nesting of layers."""
    from visionshare import (
        Chains,
        ChannelMaps,
        Deslanted,
        GaborBank,
        KernelAnchors,
        LearnedMaps,
        LocalBinaryPatterns,
        PatchTemplates,
        Pixels,
        QuantizedLayers,
        RandomFourier,
        Stumps,
        UnionOfFamilies,
        Units,
    )

    def cells(n=7, grid=2, padding=0, q=2):
        return PatchTemplates(q, n, grid, masks="cells", padding=padding, n_patches=900)

    def masks():
        return PatchTemplates(3, 12, 2, (2.0,), n_patches=900)

    def maps(inside, n=4, size=2, pool=1, padding=0):
        return LearnedMaps(inside, n, size, pool, padding, n_patches=900)

    def gradients(inside, pool=1, **options):
        return ChannelMaps(inside, ("gray", "orientations"), 4, pool=pool, **options)

    gray = {
        "lbp": LocalBinaryPatterns(grid=2, radius=1.0, points=8),
        "cells": cells(9, 3, 1, 3),
        "cells-of-one": cells(9, 1),
        "chains": Chains(9, (3, 2), (2, 1), n_first=5, n_patches=900),
        "chains-of-three": Chains(7, (2, 2, 2), (1, 2, 1), n_first=5, n_second=6, n_patches=900),
        "maps-cells": maps(cells(), 3, 3, 2, 1),
        "maps-maps-cells": maps(maps(cells(), 4), 5, 3, 1, 1),
        "maps-maps-maps-cells": maps(maps(maps(cells(5), 3), 4, 2, 2, 1), 5, 3, 1, 1),
        "maps-masks": maps(masks(), 3, 2),
        "maps-pixels": maps(Pixels(), 3, 3, 2),
        "maps-gabor": maps(GaborBank(4), 2, 2),
        "maps-anchors": maps(KernelAnchors(n_anchors=5), 3, 3, 2),
        "deslanted-cells": Deslanted(cells()),
        "deslanted-masks": Deslanted(masks()),
        "deslanted-maps-cells": Deslanted(maps(cells(), 3, 3)),
        "deslanted-maps-maps-cells": Deslanted(maps(maps(cells(), 4), 5, 3, 1, 1)),
        "deslanted-anchors": Deslanted(KernelAnchors(n_anchors=6)),
        "deslanted-units-cells": Deslanted(Units(cells(), 6)),
        "deslanted-channels-cells": Deslanted(gradients(cells())),
        "maps-deslanted-cells": maps(Deslanted(cells()), 3, 3),
        "channels-cells": gradients(cells()),
        "channels-masks": gradients(masks(), 2),
        "channels-pixels": gradients(Pixels(), 2, normalization="local", window=3),
        "channels-maps-cells": gradients(maps(cells(), 4)),
        "channels-maps-maps-cells": gradients(maps(maps(cells(), 4), 5, 3, 1, 1)),
        "channels-anchors": gradients(KernelAnchors(n_anchors=6), 2, normalization="local"),
        "channels-deslanted-cells": gradients(Deslanted(cells())),
        "channels-lbp": ChannelMaps(LocalBinaryPatterns(grid=2), ("magnitude",)),
        "units-pixels": Units(Pixels(), 7),
        "units-masks": Units(masks(), 7),
        "units-cells": Units(cells(), 7, "square"),
        "units-maps-cells": Units(maps(cells(), 3, 3), 7),
        "units-deslanted-maps-maps-cells": Units(Deslanted(maps(maps(cells(), 4), 5, 3, 1, 1)), 9),
        "units-channels-maps-cells": Units(gradients(maps(cells(), 4)), 7),
        "units-units-cells": Units(Units(cells(), 8), 5, "square"),
        "units-anchors": Units(KernelAnchors(n_anchors=6, n_components=4), 5),
        "units-union": Units(UnionOfFamilies([cells(), Stumps(1)]), 6),
        "union-of-networks": UnionOfFamilies(
            [Deslanted(maps(cells(), 3, 3)), gradients(cells()), RandomFourier(5)]
        ),
        "maps-union": maps(UnionOfFamilies([Pixels(), Stumps(1)]), 3, 3),
        "deslanted-union": Deslanted(UnionOfFamilies([cells(), masks()])),
        "quantized-ternary": QuantizedLayers(cells(6, 3, 1), bits="ternary"),
        "quantized-two": QuantizedLayers(maps(cells(), 9, 3, padding=1), bits=2),
        "quantized-four": QuantizedLayers(Deslanted(maps(maps(cells(), 5, 2, 1), 4, 3, 1, 1)), 4),
        "quantized-units": QuantizedLayers(Units(Deslanted(maps(cells(), 4, 3)), 12), bits=8),
        "quantized-squares": QuantizedLayers(Units(cells(), 9, "square"), bits=8),
        "union-of-quantized": UnionOfFamilies(
            [QuantizedLayers(maps(cells(), 4, 2), bits=4), QuantizedLayers(cells(), bits=8)]
        ),
    }
    color = {
        "color-cells": cells(),
        "color-masks": masks(),
        "color-maps-cells": maps(cells(), 4),
        "color-channels-maps-cells": ChannelMaps(
            maps(cells(), 4), ("rgb", "opponent", "ycbcr", "magnitude", "orientations"), 3
        ),
        "color-units-channels-cells": Units(
            ChannelMaps(cells(), ("ycbcr", "orientations"), pool=2), 6
        ),
        "color-quantized": QuantizedLayers(maps(cells(), 4), bits=4),
        "color-lbp": LocalBinaryPatterns(grid=2),
    }
    return gray, color


def _samples():
    """Return classifiers and their images by name."""
    import numpy as np

    from visionshare import CompactClassifier

    gray, color = _families()
    rng = np.random.default_rng(0)
    samples = {}
    for in_color, families in ((False, gray), (True, color)):
        images = _images(in_color, 8, False)
        for name, family in families.items():
            fitted = family.fit(images, np.arange(len(images)) % 10)
            ids = np.sort(rng.choice(fitted.n_features_, min(25, fitted.n_features_), False))
            chosen = fitted.take(ids)
            spread = chosen.transform(images).std(axis=0) + 1e-3
            weights = (rng.standard_normal((10, len(ids))) / spread).astype(np.float32)
            classifier = CompactClassifier(chosen, weights, np.zeros(10), np.arange(10))
            samples[name] = (classifier, images[:_ANSWERED])
    samples.update(_learned())
    return samples


def _learned():
    """Return classifiers that were fine-tuned, quantized, averaged, or may stop early."""
    from dataclasses import replace

    from sklearn.datasets import load_digits

    from visionshare import Deslanted, LearnedMaps, PatchTemplates, ShareBoost
    from visionshare.classifier import averaged, learn_exit_rule, quantize
    from visionshare.columns import ArrayColumns
    from visionshare.learners.fine_tuning.settings import FineTuning, Quantization
    from visionshare.learners.fine_tuning.tune import fine_tune

    images, y = _images(False, 8, False), load_digits().target[:300]

    def greedy(seed=0, rounds=5):
        patches = PatchTemplates(2, 9, 2, masks="cells", n_patches=900, random_state=seed)
        family = Deslanted(LearnedMaps(patches, 4, 3, 1, 1, 900)).fit(images)
        columns = ArrayColumns.from_family(family, images)
        learner = ShareBoost(rounds=rounds).fit(columns, y)
        return learner.to_classifier(family)

    def tuned(start, **settings):
        plain = {"epochs": 2, "batch": 64, "rate": 1e-2, "validation_fraction": 0.0}
        return fine_tune(start, images, y, FineTuning(**plain, **settings))

    few = Quantization(2, 4, 0.0)
    made = {
        "greedy-with-path": greedy(),
        "tuned-linear": tuned(greedy(), head="linear"),
        "tuned-products": tuned(greedy(rounds=3), head="products", max_products=6),
        "tuned-hidden": tuned(greedy(), head="hidden", n_units=8, weight_standardization=True),
        "tuned-low-rank": tuned(greedy(), head="low-rank", n_units=8),
        "tuned-few-bits": tuned(greedy(), head="linear", quantization=few),
        "tuned-hidden-few-bits": tuned(greedy(), head="hidden", n_units=8, quantization=few),
        "tuned-low-rank-ternary": tuned(
            greedy(), head="low-rank", n_units=8, quantization=Quantization("ternary", 4, 0.0)
        ),
    }
    members = [tuned(greedy(seed), head="hidden", n_units=6) for seed in (0, 1)]
    made["averaged"] = averaged(members)
    made["quantized-8"] = quantize(made["tuned-hidden"], images, 8)
    made["quantized-averaged"] = quantize(made["averaged"], images, 8)
    long = greedy(rounds=8)
    made["with-exit-rule"] = replace(long, exit_rule=learn_exit_rule(long, images, y))
    return {name: (classifier, images[:_ANSWERED]) for name, classifier in made.items()}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
