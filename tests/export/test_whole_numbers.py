"""Programs in whole numbers: the same scores from C, from Python, and from the definition."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.export.test_c_families import gcc, mean_change, run_example  # noqa: F401
from visionshare import CompactClassifier, Monomials, PatchTemplates, Pixels
from visionshare.classifier import averaged
from visionshare.codegen.quantization import quantize_clipped
from visionshare.codegen.rounding import round_on_examples
from visionshare.codegen.whole_numbers import class_scales
from visionshare.errors import InputError
from visionshare.export import c_program, compile_classifier
from visionshare.generators.monomials.chosen_pairs import pair_masks
from visionshare.generators.patches.whole import whole_patches


def model_of(images, n_classes=5, n_features=9, products=True, seed=4, **parameters):
    """Return a classifier of patches, or of all products of their pairs, its weights random."""
    rng = np.random.default_rng(seed)
    parameters = {"patch_size": 4, "n_templates": 6, "grid": 2, "widths": (2.0,), **parameters}
    family = PatchTemplates(n_patches=1000, **parameters).fit(images)
    family = family.take(rng.permutation(family.n_features_)[:n_features])
    if products:
        pairs = [(i, j) for i in range(n_features) for j in range(i, n_features)]
        family = Monomials.of(family, [(i,) for i in range(n_features)] + pairs)
    size = np.maximum(np.sqrt(np.square(family.transform(images)).mean(axis=0)), 1e-3)
    weights = (rng.normal(size=(n_classes, family.n_features_)) / size).astype(np.float32)
    intercept = rng.normal(size=n_classes).astype(np.float32)
    return CompactClassifier(family, weights, intercept, np.arange(n_classes), 1.5)


def left_out(*case):
    """Return a case that ``scripts/test --all`` alone runs."""
    return pytest.param(*case, marks=pytest.mark.exhaustive)


@pytest.fixture(scope="module")
def of_products(images):
    return model_of(images[0])


def edges(images):
    """Return images, the first three black, white and of one row."""
    test = images.copy()
    test[0], test[1], test[2, 1:] = 0, 255, 0
    return test


def program_of(model, images, quantize):
    return c_program(model, quantize=quantize, examples=images[0])


@pytest.mark.parametrize("quantize", ["int4", "int8"])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_c_says_what_python_says(n_classes, quantize, gcc, images, tmp_path):  # noqa: F811
    model, test = model_of(images[0], n_classes), edges(images[1])
    program = program_of(model, images, quantize)
    expected = program.reference(test)
    for one_by_one in (0, 1):
        flags = [f"-DCLASSIFIER_ONE_BY_ONE={one_by_one}"]
        scores, _ = run_example(tmp_path, program, test, gcc, flags)
        assert np.rint(scores / program.score_scale).tolist() == expected.tolist()
    assert mean_change(expected[3:] * program.score_scale, model, test[3:]) <= 0.2
    assert "float features" not in program.files["classifier.h"]


def some_products(images, seed, n_products):
    """Return a classifier of features and of some products of their pairs."""
    model, rng = model_of(images, seed=seed), np.random.default_rng(seed)
    chosen = np.r_[:9, 9 + np.sort(rng.permutation(45)[:n_products])]
    family = model.family.take(chosen)
    return CompactClassifier(
        family, model.weights[:, chosen], model.intercept, model.classes_, model.temperature
    )


@pytest.mark.parametrize(
    ("members", "quantize"), [(3, "int4"), (3, "int8"), (1, "int8"), left_out(1, "int4")]
)
def test_chosen_products_and_means(members, quantize, gcc, images, tmp_path):  # noqa: F811
    model = averaged([some_products(images[0], seed, 8 + seed) for seed in range(members)])
    program, test = program_of(model, images, quantize), edges(images[1])
    expected = program.reference(test)
    for one_by_one in (0, 1):
        flags = [f"-DCLASSIFIER_ONE_BY_ONE={one_by_one}"]
        scores, _ = run_example(tmp_path, program, test, gcc, flags)
        assert np.rint(scores / program.score_scale).tolist() == expected.tolist()
    assert mean_change(expected[3:] * program.score_scale, model, test[3:]) <= 0.2
    # One function computes the patches of all members.
    assert program.files["classifier.c"].count("_responses(\n") == 1
    assert "chosen" in program.files["classifier.c"]


def zeroed(model, rows, columns, size):
    """Return a classifier with weights of 0 in chosen places, its scores so many times as large."""
    weights = model.weights.copy()
    weights[np.ix_(rows, columns)] = 0
    return replace(
        model, weights=weights * np.float32(size), intercept=model.intercept * np.float32(size)
    )


@pytest.mark.parametrize(
    ("size", "quantize"),
    [
        (1e-4, "int4"), (1, "int4"), (1e3, "int4"), (1, "int8"),
        left_out(1e-4, "int8"), left_out(1e3, "int8"),
    ],
)  # fmt: skip
def test_classes_without_products(size, quantize, of_products, gcc, images, tmp_path):  # noqa: F811
    # The first class has features alone, and the second one nothing but its intercept.
    every, products = np.arange(54), np.arange(9, 54)
    model = zeroed(zeroed(of_products, [0], products, size), [1], every, 1)
    test = edges(images[1])
    program, whole = (program_of(m, images, quantize) for m in (model, of_products))
    expected = program.reference(test)
    scores, _ = run_example(tmp_path, program, test, gcc)
    assert np.rint(scores / program.score_scale).tolist() == expected.tolist()
    errors = np.abs(scores - model.decision_function(test)).mean(axis=0) / size
    assert (errors[:2] <= [0.02, 1e-4]).all()
    # The other classes are as near to their scores as in a program without such classes.
    known = whole.reference(test) * whole.score_scale - of_products.decision_function(test)
    assert (errors[2:] <= 1.1 * np.abs(known).mean(axis=0)[2:] + 0.01).all()


@pytest.mark.parametrize("rows", [[0], range(5)], ids=["one", "all"])
@pytest.mark.parametrize("size", [1e-4, 1])
def test_classes_without_weights(size, rows, gcc, images, tmp_path):  # noqa: F811
    plain = model_of(images[0], products=False)
    model, test = zeroed(plain, rows, np.arange(9), size), images[1]
    program, whole = (c_program(m, quantize="int8") for m in (model, plain))
    scores, _ = run_example(tmp_path, program, test, gcc)
    # Printed scores are of seven digits.
    assert np.allclose(scores, program.reference(test) * program.score_scale, rtol=1e-6)
    errors = np.abs(scores - model.decision_function(test)).mean(axis=0) / size
    known = whole.reference(test) * whole.score_scale - plain.decision_function(test)
    bounds = 1.1 * np.abs(known).mean(axis=0) + 1e-5
    bounds[rows] = 1e-5
    assert (errors <= bounds).all()


# Whole tables of 8 bits are those of the tests above where numbers have any sign.
@pytest.mark.parametrize(
    ("chosen", "positive", "quantize"),
    [
        *product([range(9), range(9, 54), range(9, 54, 5)], [False, True], ["int4"]),
        *product([range(9), range(9, 54, 5)], [True], ["int8"]),
        *(
            left_out(*case, "int8")
            for case in [
                (range(9), False), (range(9, 54), False), (range(9, 54), True),
                (range(9, 54, 5), False),
            ]
        ),
    ],
    ids=str,
)  # fmt: skip
def test_tables_of_any_type(chosen, positive, quantize, of_products, gcc, images, tmp_path):  # noqa: F811
    # Tables that hold zeros or positive numbers alone have other types in C.
    weights = of_products.weights[:, chosen]
    model = CompactClassifier(
        of_products.family.take(np.array(chosen)), np.abs(weights) if positive else weights,
        of_products.intercept, of_products.classes_, of_products.temperature,
    )  # fmt: skip
    program, test = program_of(model, images, quantize), edges(images[1])
    expected = program.reference(test)
    scores, _ = run_example(tmp_path, program, test, gcc)
    assert np.rint(scores / program.score_scale).tolist() == expected.tolist()
    assert mean_change(scores[3:], model, test[3:]) <= 0.2


def test_masks_of_pairs():
    rng = np.random.default_rng(7)
    for n in (1, 8, 21):
        i, j = np.tril_indices(n)
        kept = rng.random(len(i)) < 0.3
        masks, found, at = pair_masks(np.stack([i[kept], j[kept]], axis=1), n), [], 0
        for row in range(n):
            size = masks[at]
            bits = np.unpackbits(masks[at + 1 : at + 1 + size].astype(np.uint8), bitorder="little")
            found += [(row, row - d) for d in np.flatnonzero(bits)]
            at += 1 + size
        assert at == len(masks)
        assert sorted(found) == sorted(zip(i[kept].tolist(), j[kept].tolist(), strict=True))


def test_features_by_their_definition(images):
    """Every position by itself, as the formats page says, in whole numbers."""
    family = model_of(images[0], products=False).family
    made, test = whole_patches(family, 8), images[1][:4]
    q, (pad, _) = family.patch_size, family.pads_
    canvas = np.pad(test, ((0, 0), (pad, pad), (pad, pad))).astype(int)
    template_of = family.layout_[made.order, 0]
    for image, found in zip(canvas, made.evaluate(test), strict=True):
        for place, (top, bottom, left, right) in enumerate(made.spans):
            t = template_of[place]
            best = 0
            for x in range(left, right):
                profile = 0
                for y in range(top, bottom):
                    patch = image[y : y + q, x : x + q]
                    response = max(0, int((patch * made.taps[t, 0]).sum())) >> made.shifts[t]
                    assert response < 2**16
                    profile = max(profile, response * made.rows[place][y - top])
                best = max(best, (profile >> 8) * made.cols[place][x - left])
            assert found[place] == (best + 2048) >> 12
    values = family.transform(test)[:, made.order]
    near = np.abs(made.evaluate(test) * made.scales - values).max()
    assert near <= 0.02 * values.max()


def test_scores_by_their_definition(of_products, images):
    """Sums of products, product by product."""
    program = c_program(of_products, quantize="int8")
    made = whole_patches(of_products.family.base_, 8)
    features = made.evaluate(images[1])
    values = np.empty_like(features, np.float64)
    values[:, made.order] = features * made.scales
    expected = of_products.intercept + sum(
        np.prod(values[:, factors], axis=1)[:, None] * of_products.weights[:, number]
        for number, factors in enumerate(of_products.family.factors_)
    )
    scores = program.reference(images[1]) * program.score_scale
    assert np.abs(scores - expected).mean() <= 0.06 * expected.std()


def test_rounding_on_examples_beats_rounding(images, of_products):
    test = images[1]
    scores = of_products.decision_function(test)
    on_examples = program_of(of_products, images, "int4")
    change = np.abs(on_examples.reference(test) * on_examples.score_scale - scores).mean()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)).astype(np.float32) @ rng.normal(size=(6, 40)).astype(np.float32)
    weights = rng.normal(size=(3, 40))
    nearest = quantize_clipped(weights, 4)
    rounded = round_on_examples(weights, 4, lambda start, stop: X[:, start:stop])
    assert np.array_equal(nearest.scales, rounded.scales)
    assert np.abs(rounded.integers).max() <= 7
    errors = [
        np.square(X @ (made.integers * made.scales[:, None] - weights).T).mean()
        for made in (nearest, rounded)
    ]
    assert errors[1] < 0.3 * errors[0]
    assert change <= 0.1 * scores.std()


def test_what_is_not_whole_stays_float(images):
    rng = np.random.default_rng(1)
    patches = model_of(images[0], products=False).family
    unlike = averaged(
        [model_of(images[0], patch_size=size, products=False) for size in (3, 4)]
    ).family
    long = Monomials.of(patches, [(0, 1, 2), *((i, j) for i in range(9) for j in range(9))])
    pixels = Pixels().fit(images[0]).take([3, 9])
    for family in (unlike, long, pixels):
        weights = rng.normal(size=(3, family.n_features_)).astype(np.float32)
        model = CompactClassifier(family, weights, np.zeros(3, np.float32), np.arange(3))
        program = c_program(model, quantize="int8")
        assert (program.score, program.reference) == ("float32", None)
        with pytest.raises(InputError, match="int8"):
            c_program(model, quantize="int4", examples=images[0])
    model = model_of(images[0], products=False)
    assert c_program(model, quantize="int8").score == "int32"
    assert c_program(model, quantize="int16").score == "float32"
    assert c_program(model, quantize="int8", pixel="float32").score == "float32"


def test_int4_needs_examples(of_products, images):
    for examples in (None, images[0][:0], images[0][:, :5], images[0].astype(np.float32)):
        with pytest.raises(InputError, match="examples"):
            c_program(of_products, quantize="int4", examples=examples)


def test_compiled_scores_are_on_the_classifiers_scale(of_products, images, tmp_path):
    compiled = compile_classifier(of_products, quantize="int8", cache_dir=tmp_path / "cache")
    test = images[1]
    scores = compiled.decision_function(test)
    expected = of_products.decision_function(test)
    assert np.abs(scores - expected).mean() <= 0.05 * expected.std()
    assert np.array_equal(compiled.decision_function(test[3]), scores[3:4])
    proba = compiled.predict_proba(test)
    assert np.allclose(proba.sum(axis=1), 1, atol=1e-5)


def test_scales_of_classes():
    rng = np.random.default_rng(2)
    for _ in range(50):
        units = np.exp(rng.normal(-15, 8)) * rng.uniform(0.2, 1, 4)
        largest = rng.integers(1, 2**46, 4)
        intercept = rng.normal(size=4) * units * largest
        made = class_scales(units, largest, intercept)
        sums = (rng.uniform(-1, 1, (20, 4)) * largest).astype(np.int64)
        scores = made.scores(sums)
        assert np.abs(scores).max() < 2**30
        assert np.abs(made.multipliers).max() * largest.max() < 2**63
        exact = sums * units + intercept
        # Half of a unit of the multiplier, which has 11 bits or more, and of the score.
        bound = np.abs(sums * units) / 2**11 + 2 * made.scale
        assert (np.abs(scores * made.scale - exact) <= bound).all()
