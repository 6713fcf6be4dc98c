"""Writes the samples of version 1 of every format but the classifiers of all families.

Run with the last library that wrote the names of before 0.2 ("straightened", "centres"), from its
root: python make_v1.py FOLDER. A later one cannot run it. The classifiers in classifiers-v1 were
written by the same library: each of the families in its tests of exports, fitted to 300 digits,
with 25 features and weights drawn at random.
"""

import os
import sys
from pathlib import Path


def main(out: Path) -> None:
    """Write stores, family files and a classifier with all that it can carry."""
    # Here, so that tests that look at all modules do not import what is gone.
    import numpy as np
    from PIL import Image

    from visionshare import KernelAnchors, PatchTemplates, Pixels, ShareBoost, Straightened
    from visionshare.batch.extraction import extract_features
    from visionshare.classifier import ExitRule
    from visionshare.datasets import Preprocessing, load_dataset
    from visionshare.generators.family_file import write_family
    from visionshare.store import ArrayColumns, create_store

    train = load_dataset("digits", "train")
    images, y = train.images[:120], train.labels[:120]
    families = {
        "patches": PatchTemplates(3, 4, 2, (2.0,), n_patches=500),
        "anchors": KernelAnchors(n_anchors=2, n_radii=2, n_components=3, centres="kmeans"),
        "deslanted": Straightened(Pixels()),
    }
    answers = {}
    for name, family in families.items():
        fitted = family.fit(images)
        columns = create_store(out / f"store-v1-{name}", fitted, images, "float16")
        columns.fill(np.arange(fitted.n_features_)[:12])
        columns.fill()
        answers[f"store-v1-{name}"] = columns.columns_of(scaled=False)
        write_family(out / f"features-v1-{name}.safetensors", fitted)
        answers[f"features-v1-{name}"] = fitted.evaluate(images[:9])
    patches = families["patches"]
    learner = ShareBoost(rounds=4)
    columns = ArrayColumns.from_family(patches, images)
    model = learner.fit(columns, y).to_classifier(patches)
    model = model.with_exit_rule(ExitRule((1, 3), (0.5, 0.5)))
    steps = Preprocessing("automatic", True, True, fit="box", margin=1, centre="mass")
    model = model.with_preprocessing(steps)
    model.save(out / "prepared-v1.safetensors")
    # Also what extraction left of image files.
    os.chdir(out)
    files = []
    for number, image in enumerate(images[:9]):
        files.append(f"image-{number}.png")
        Image.fromarray(image).save(files[-1])
    extract_features(families["anchors"], files, "extraction-v1")
    for file in files:
        Path(file).unlink()
    answers["prepared-v1"] = model.decision_function(images[:9])
    np.savez_compressed("answers-v1.npz", **answers)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
