"""Writes samples of classifiers, stores and checkpoints as of now: python tests/archives/make.py.

A sample of every released format version stays here and is read by test_archives.py; make a new
one only when the format version rises, and keep the old ones.
"""

import json
import shutil
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from visionshare import CompactClassifier, PatchTemplates, Pixels, ShareBoost
from visionshare.classifier.file_format import FORMAT_VERSION
from visionshare.columns import ArrayColumns
from visionshare.datasets import load_dataset
from visionshare.learners.checkpoint import VERSION as CHECKPOINT_VERSION
from visionshare.store import create_store
from visionshare.store.manifest import VERSION

HERE = Path(__file__).parent


def main() -> None:
    """Write a sample of each format, and beside them what they must answer."""
    _write_classifier()
    _write_labels()
    _write_store()
    _write_checkpoint()


def _write_checkpoint() -> None:
    """Write the rounds of a fit, and what it learned."""
    digits, folder = load_digits(), HERE / f"checkpoint-v{CHECKPOINT_VERSION}"
    shutil.rmtree(folder, ignore_errors=True)
    model = ShareBoost(rounds=4, checkpoint=folder)
    model.fit(digits.data[:300].astype(np.float32), digits.target[:300])
    seconds = [step.seconds for step in model.path_]
    learned = {"coef": model.coef_, "intercept": model.intercept_, "support": model.support_}
    np.savez_compressed(folder.with_suffix(".npz"), **learned, seconds=seconds)


def _write_store() -> None:
    """Write the columns whose values answers-v1.npz has of version 1."""
    images = load_dataset("digits", "train").images[:120]
    family = PatchTemplates(3, 4, 2, (2.0,), n_patches=500).fit(images)
    create_store(HERE / f"store-v{VERSION}-patches", family, images).fill()


def _write_classifier() -> None:
    digits = load_digits()
    images = (digits.images * 15).astype(np.uint8)
    family = PatchTemplates(3, 32, 2, (3.0,), n_patches=20_000).fit(images[:1000])
    columns = ArrayColumns.from_family(family, images[:1000])
    learner = ShareBoost(rounds=12).fit(columns, digits.target[:1000])
    classifier = learner.to_classifier(family, metadata={"made by": "tests/archives/make.py"})
    name = f"digits-v{FORMAT_VERSION}"
    classifier.save(HERE / f"{name}.safetensors")
    scores = classifier.decision_function(images[1000:1020])
    answers = {
        "scores": np.round(scores.astype(float), 4).tolist(),
        "prefix": classifier.at(5).predict(images[1000:1020]).tolist(),
        "macs": classifier.macs,
    }
    (HERE / f"{name}.json").write_text(json.dumps(answers) + "\n")


def _write_labels() -> None:
    """Write a classifier whose labels are of another type than JSON has."""
    family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    weights = np.eye(2, dtype=np.float32)
    classifier = CompactClassifier(family, weights, np.zeros(2), np.array([250, 7], np.uint8))
    classifier.save(HERE / f"labels-v{FORMAT_VERSION}.safetensors")


if __name__ == "__main__":
    main()
