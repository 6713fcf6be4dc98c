"""What a step of fine-tuning is made of, each part against its plain form, on one thread."""

from __future__ import annotations

import cv2
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.data import synthetic
from benchmarks.measuring import Paired
from visionshare.datasets import Augmentation, augmented_copies
from visionshare.generators.patches import PatchTemplates
from visionshare.generators.patches.kernels import patch_features
from visionshare.generators.patches.plan import Plan
from visionshare.generators.patches.tuning import TunableTemplates
from visionshare.learners.fine_tuning.product_scores import ProductScores
from visionshare.machine.resources import thread_limit


def test_features_with_their_positions(paired: Paired) -> None:
    """128 images side by side against one after the other, by the kernel of few images."""
    family = synthetic(0.5).family
    assert isinstance(family, PatchTemplates)
    features = TunableTemplates(family)
    plan = features._plan
    assert isinstance(plan, Plan)
    images = np.random.default_rng(1).integers(0, 256, (128, 28, 28, 1), np.uint8)
    out = np.empty((plan.n_features, 128), np.float32)
    positions = np.empty(out.T.shape, np.int32)

    def ours() -> None:
        for _ in range(8):
            plan.with_positions(images)

    def plain() -> None:
        for _ in range(8):
            patch_features(
                images, plan.tables, plan.taps, plan.row_masks, plan.col_masks, 1, out, 0, positions
            )

    with thread_limit(1):
        paired(ours, plain)


def test_products_of_pairs(paired: Paired) -> None:
    """Scores and gradients of 128 images, 120 features and their products, against numpy's."""
    rng = np.random.default_rng(0)
    m, n, k = 128, 120, 10
    raw = rng.gamma(2.0, size=(m, n)).astype(np.float32)
    scores = ProductScores.start(rng.normal(size=(k, n)), np.zeros(k), raw, True)
    scores.Q[...] = rng.normal(size=scores.Q.shape)
    X, R = scores.standardized(raw), rng.normal(size=(k, m)).astype(np.float32)
    i, j = np.triu_indices(n)

    def ours() -> None:
        for _ in range(8):
            _, seen = scores.scores(X)
            scores.gradients(X, seen, R)

    def plain() -> None:
        for _ in range(8):
            P = (X[:, i] * X[:, j] - scores.product_offset) * scores.product_scale
            scores.W @ X.T + scores.Q @ P.T + scores.c[:, None]
            D = np.zeros((m, n, n), np.float32)
            D[:, i, j] = R.T @ scores.Q * scores.product_scale
            R.T @ scores.W + np.matmul(D + D.transpose(0, 2, 1), X[:, :, None])[..., 0]
            R @ X, R.sum(axis=1), R @ P

    with thread_limit(1):
        paired(ours, plain)


def test_deformations(paired: Paired) -> None:
    """1024 images of 28x28 against white noise that is blurred for each."""
    images = np.random.default_rng(0).integers(0, 256, (1024, 28, 28), np.uint8)
    y, x = np.indices((28, 28), np.float32)

    def ours() -> None:
        list(augmented_copies(images, Augmentation(), 1))

    def plain() -> None:
        rng = np.random.default_rng(0)
        for image in images:
            dx, dy = (
                cv2.GaussianBlur(rng.standard_normal((28, 28), np.float32), (33, 33), 4.0)
                for _ in range(2)
            )
            size = 1 / np.sqrt((np.mean(dx**2) + np.mean(dy**2)) / 2)
            cv2.remap(image, x + size * dx, y + size * dy, cv2.INTER_LINEAR)

    with threadpool_limits(1):
        paired(ours, plain)
