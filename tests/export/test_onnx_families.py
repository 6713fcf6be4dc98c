"""The ONNX model of every family against Python, in onnxruntime and in the reference."""

import numpy as np
import pytest

from tests.generators.examples import family_examples
from visionshare import (
    CompactClassifier,
    GaborBank,
    KernelAnchors,
    PatchTemplates,
    Stumps,
    UnionOfFamilies,
)
from visionshare.datasets import load_dataset
from visionshare.export import onnx_program, run_onnx
from visionshare.generators import family_names

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

KINDS = [
    *(label for name in family_names() for label in family_examples(name)),
    "color", "color-channels", "color-channels-normalized",
]  # fmt: skip
A_FEW = 200


@pytest.fixture(scope="module")
def digits():
    """Return all 1797 digits."""
    return np.concatenate([load_dataset("digits", split).images for split in ("train", "test")])


def images_for(model, digits, pixel):
    if model.image_shape == digits.shape[1:]:
        images = digits
    else:
        images = np.random.default_rng(1).integers(0, 256, (60, *model.image_shape), np.uint8)
    return images if pixel == "uint8" else images.astype(np.float32) / np.float32(255)


def assert_same(outputs, model, images):
    labels, probabilities, scores = outputs[:3]
    expected = model.decision_function(images)
    assert scores.shape == expected.shape
    assert np.abs(scores - expected).max() <= 1e-5 * np.abs(expected).max()
    assert labels.tolist() == model.predict(images).tolist()
    assert np.abs(probabilities - model.predict_proba(images)).max() <= 1e-5


def reference(program, images):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(onnx.load_from_string(program.content)).run(None, {"images": images})


@pytest.mark.parametrize("pixel", ["uint8", "float32"])
@pytest.mark.parametrize("kind", KINDS)
def test_families(kind, pixel, classifier, digits):
    model = classifier(kind)
    images = images_for(model, digits, pixel)
    program = onnx_program(model, pixel=pixel)
    onnx.checker.check_model(onnx.load_from_string(program.content), full_check=True)
    assert_same(run_onnx(program, images), model, images)
    assert_same(run_onnx(program, images[7:8]), model, images[7:8])


@pytest.mark.parametrize("kind", KINDS)
def test_families_in_the_reference(kind, classifier, digits):
    model = classifier(kind)
    images = images_for(model, digits, "uint8")[:A_FEW]
    program = onnx_program(model)
    assert_same(reference(program, images), model, images)
    assert_same(reference(program, images[7:8]), model, images[7:8])


def random_classifier(family, classes=(3, 5)):
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(len(classes), family.n_features_))
    intercept = rng.normal(size=len(classes))
    return CompactClassifier(family, weights, intercept, np.array(classes), 0.5)


@pytest.mark.parametrize("pixel", ["uint8", "float32"])
def test_stumps_at_their_thresholds(pixel):
    """Images of values that are thresholds, and of their neighbors."""
    values = np.arange(256, dtype=np.uint8).reshape(-1, 1, 1)
    images = values if pixel == "uint8" else values.astype(np.float32) / np.float32(255)
    stumps = Stumps().fit(images)
    stumps.thresholds_ = (values.ravel()[:-1] / 255).astype(np.float32)
    model = random_classifier(stumps)
    assert_same(run_onnx(onnx_program(model, pixel=pixel), images), model, images)


def test_vectors_are_floats():
    X = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    parts = [Stumps(2), PatchTemplates(3, 4, 2, (2.0,), n_patches=200), GaborBank(5)]
    model = random_classifier(UnionOfFamilies(parts).fit(X))
    program = onnx_program(model)
    assert program.pixel == "float32"
    assert_same(run_onnx(program, X), model, X)


@pytest.mark.parametrize("kind", ["linear", "gaussian"])
def test_anchors_far_from_zero(kind):
    """Distances are small differences there, of numbers too large to be squared exactly."""
    X = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    X[:, 0] += np.float32(1e7)
    family = KernelAnchors(kind, n_anchors=10, n_radii=4, scaling="none").fit(X)
    if kind == "linear":
        # The constants: what differs is who is inside.
        family = family.take(np.flatnonzero(family.ids_ % 6 == 5))
    model = random_classifier(family)
    assert_same(run_onnx(onnx_program(model), X), model, X)


@pytest.mark.parametrize("contrast", ["none", "mean", "unit"])
def test_patches_share_windows_and_templates(contrast, digits):
    """All masks of two widths of each template, of bytes: white, black, a corner, a row."""
    family = PatchTemplates(
        4, 6, 2, (1.0, 30.0), 0.3, padding=1, contrast=contrast, n_patches=2000
    ).fit(digits[:200])
    model = random_classifier(family.take(np.random.default_rng(0).permutation(48)))
    images = digits[:20].copy()
    images[0], images[1], images[2:4] = 0, 255, 0
    images[2, 0, 0], images[3, -1] = 1, 200
    program = onnx_program(model)
    assert_same(run_onnx(program, images), model, images)
    assert_same(reference(program, images), model, images)


def test_only_windows_of_masks_are_computed(digits):
    """A template under a mask of one corner reads that corner alone."""
    family = PatchTemplates(3, 4, 4, (0.5,), 0.6, padding=0, n_patches=2000).fit(digits[:200])
    model = random_classifier(family.take(np.array([0])))
    graph = onnx.shape_inference.infer_shapes(
        onnx.load_from_string(onnx_program(model).content)
    ).graph
    sizes = {
        value.name: [d.dim_value for d in value.type.tensor_type.shape.dim[1:]]
        for value in graph.value_info
    }
    reached = [int((masks[0] > 0).sum()) for masks in (family.row_masks_, family.col_masks_)]
    responses = [sizes[node.output[0]] for node in graph.node if node.op_type == "Conv"]
    assert responses == [[1, *reached]]
    assert max(reached) < family.row_masks_.shape[1]
