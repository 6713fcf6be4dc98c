"""What every feature family must do."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from visionshare.errors import InputError


def check_family(family: Any, images: np.ndarray, y: np.ndarray | None = None) -> None:
    """Put a finite feature family through every check.

    Parameters
    ----------
    family : FeatureFamily
        Unfitted.
    images : ndarray
        A few dozen images or vectors that the family can learn from.
    y : ndarray, optional
        Their classes, for families that learn from them.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import Pixels
    >>> check_family(Pixels(), np.arange(60, dtype=np.float32).reshape(5, 3, 4))
    """
    from sklearn.base import clone

    untouched = images.copy()
    _check_not_fitted(clone(family), images)
    fitted = clone(family).fit(images, y)
    assert fitted.n_features_ >= 1, "n_features_ is not a number of features"
    assert tuple(fitted.image_shape_) == images.shape[1:], "image_shape_ is not an image's shape"
    again = clone(family).fit(images, y)
    assert_array_equal(
        fitted.transform(images), again.transform(images), "two fits give different features"
    )
    _check_values(fitted, images)
    _check_restriction(fitted, images)
    _check_weighted_sums(fitted, images)
    _check_added_cost(fitted)
    _check_layers(fitted)
    _check_pictures(fitted, images)
    _check_contributions(fitted, images)
    _check_identity(fitted, images)
    _check_bad_input(fitted, images)
    assert_array_equal(images, untouched, "the images were changed")


def _check_not_fitted(family: Any, images: np.ndarray) -> None:
    """Check that all that needs ``fit`` says so before it."""
    from sklearn.exceptions import NotFittedError

    first = np.array([0])
    weights = np.ones((2, 1), np.float32)
    needing_fit: dict[str, tuple[Any, ...]] = {
        "transform": (images,),
        "transform_columns": (images,),
        "weighted_sums": (images, weights),
        "contributions": (images[0], weights),
        "boxes": (images[0],),
        "describe": (0,),
        "take": (first,),
        "sample": (1, np.random.default_rng(0)),
        "block_ids": (first,),
        "macs": (),
        "layer_summaries": (),
        "to_state": (),
        "get_feature_names_out": (),
    }
    for name, arguments in needing_fit.items():
        try:
            getattr(family, name)(*arguments)
        except NotFittedError:
            continue
        raise AssertionError(f"{name} does not need fit")
    assert not hasattr(family, "n_features_"), "n_features_ is known before fit"


def _few_ids(fitted: Any) -> np.ndarray:
    """Return a few ids, neither ascending nor all."""
    ids = np.random.default_rng(0).permutation(fitted.n_features_)
    return ids[: max(1, min(7, fitted.n_features_ - 1))]


def _check_values(fitted: Any, images: np.ndarray) -> None:
    whole = fitted.transform(images)
    assert whole.dtype == np.float32, f"transform gives {whole.dtype}, not float32"
    assert whole.shape == (len(images), fitted.n_features_), f"transform gives {whole.shape}"
    assert np.isfinite(whole).all(), "features are not finite"
    ids = _few_ids(fitted)
    message = "features differ when"
    assert_allclose(fitted.transform(images, ids), whole[:, ids], 1e-5, 1e-6, err_msg=message)
    columns = fitted.transform_columns(images)
    assert_array_equal(
        columns, fitted.transform_columns(images, n_jobs=2), f"{message} threads differ"
    )
    assert_allclose(columns.T, whole, 1e-5, 1e-6, err_msg="columns differ from features")
    halves = np.concatenate(
        [fitted.transform_columns(images[:3]), fitted.transform_columns(images[3:])], axis=1
    )
    assert_array_equal(halves, columns, f"{message} images come in batches")
    blocks = fitted.block_ids(np.arange(fitted.n_features_))
    together = np.sort(np.concatenate([np.empty(0, np.int64), *blocks]))
    assert_array_equal(together, np.arange(fitted.n_features_), "block_ids leaves ids out")
    for block in blocks[:3]:
        assert_array_equal(
            fitted.transform_columns(images, block), columns[block], f"{message} asked by block"
        )
    half = fitted.transform_columns(images, ids, dtype="float16")
    assert half.dtype == np.float16, f"float16 was asked for, not {half.dtype}"
    assert_array_equal(half, columns[ids].astype(np.float16), "float16 is not the nearest")
    assert fitted.transform(images, np.empty(0, np.int64)).shape == (len(images), 0)


def _check_restriction(fitted: Any, images: np.ndarray) -> None:
    ids = _few_ids(fitted)
    whole = fitted.transform(images)
    taken = fitted.take(ids)
    assert taken.n_features_ == len(ids), "take keeps another number of features"
    assert_allclose(taken.transform(images), whole[:, ids], 1e-5, 1e-6)
    alone = np.concatenate([taken.transform(image[None]) for image in images])
    assert_array_equal(alone, taken.transform(images), "one image gives other bits than many")
    assert_array_equal(
        taken.transform(images), taken.transform(images, n_jobs=2), "threads change the bits"
    )
    assert taken.transform(images, np.empty(0, np.int64)).shape == (len(images), 0)
    assert_allclose(taken.take(np.array([0])).transform(images), whole[:, ids[:1]], 1e-5, 1e-6)
    together = taken.macs()
    apart = sum(fitted.macs(np.array([j])) for j in ids)
    for cost in (together, fitted.macs()):
        assert type(cost) is int, f"macs gives {type(cost).__name__}, not int"
    assert 0 <= together <= apart, f"{together} macs together, {apart} one by one"
    assert together == fitted.macs(ids), "take changes the cost"
    if fitted.groups is not None:
        assert len(fitted.groups) == fitted.n_features_, "groups is not one number per feature"


def _check_added_cost(fitted: Any) -> None:
    rng = np.random.default_rng(1)
    shuffled = rng.permutation(fitted.n_features_)
    asked = rng.permutation(fitted.n_features_)[:20]
    for n in (0, 1, 5):
        chosen = shuffled[:n]
        before = fitted.macs(chosen)
        expected = [fitted.macs(np.append(chosen, j)) - before for j in asked]
        added = fitted.added_macs(chosen, asked)
        assert added.dtype == np.int64, f"added_macs gives {added.dtype}, not int64"
        assert_array_equal(added, expected, "added_macs is not the difference of macs")
        assert_array_equal(fitted.added_macs(chosen)[asked], added, "added_macs of all differ")
        before = _bytes_of(fitted, chosen)
        assert fitted.nbytes(chosen) == before, "nbytes is not what take holds"
        expected = [_bytes_of(fitted, np.append(chosen, j)) - before for j in asked]
        added = fitted.added_bytes(chosen, asked)
        assert added.dtype == np.int64, f"added_bytes gives {added.dtype}, not int64"
        assert_array_equal(added, expected, "added_bytes is not the difference of what takes hold")
        assert_array_equal(fitted.added_bytes(chosen)[asked], added, "added_bytes of all differ")
        _check_added_groups(fitted, chosen, asked)
    for cost in (fitted.added_macs, fitted.added_bytes):
        assert len(cost(shuffled[:1], shuffled[:0])) == 0, "nothing adds something"


def _bytes_of(fitted: Any, ids: np.ndarray) -> int:
    """Return the bytes of the arrays of a restricted family, none of no features."""
    return sum(a.nbytes for a in fitted.take(ids).to_state()[1].values()) if len(ids) else 0


def _check_added_groups(fitted: Any, chosen: np.ndarray, asked: np.ndarray) -> None:
    """Check what groups add."""
    starts = np.unique(np.minimum([0, 1, 4], len(asked) - 1))
    groups = np.split(asked, starts[1:])
    costs = [
        (lambda ids: fitted.macs(ids), fitted.added_macs),
        (lambda ids: _bytes_of(fitted, ids), fitted.added_bytes),
    ]
    for cost, added in costs:
        before = cost(chosen)
        expected = [cost(np.concatenate([chosen, group])) - before for group in groups]
        assert_array_equal(added(chosen, asked, starts), expected, "groups add another cost")
        expected = [cost(np.append(chosen, j)) - before for j in asked]
        assert_array_equal(added(chosen, asked), expected, "features add another cost")


def _check_layers(fitted: Any) -> None:
    for family in (fitted, fitted.take(_few_ids(fitted))):
        layers = family.layer_summaries()
        assert layers, "layers is empty"
        for layer in layers:
            numbers = (*layer.shape, layer.parameters, layer.macs)
            assert all(type(n) is int and n >= 0 for n in numbers), f"{layer} has no whole numbers"
        assert sum(layer.macs for layer in layers) == family.macs(), "layers cost more or less"
        assert sum(layer.parameters for layer in layers) == family.n_parameters
        # Whole numbers of few bits share the numbers of 64 bits that hold them.
        arrays = family.to_state()[1].values()
        held = sum(a.size if a.dtype.kind == "f" else 64 * a.size for a in arrays)
        assert family.n_parameters <= held, "more parameters than the state has numbers"


def _check_pictures(fitted: Any, images: np.ndarray) -> None:
    from visionshare.generators.pictures import Sample

    for family in (fitted, fitted.take(_few_ids(fitted))):
        pictures = family.pictures(Sample(images, images))
        panels = pictures.panels(range(1, family.n_features_ + 1))
        rows = [row for panel in panels for stack in panel.stacks for row in stack.rows]
        for tile in (*pictures.tiles(0), *(tile for row in rows for tile in row.tiles)):
            gray_or_color = tile.values.shape[2:] in ((), (3,))
            assert gray_or_color, f"a tile is of shape {tile.values.shape}"
            assert tile.values.size, "a tile is empty"
            assert np.isfinite(tile.values).all(), "a tile has values that are not finite"
            within = tile.signed or (tile.values.min() >= 0 and tile.values.max() <= 1)
            assert within, "a tile has values below 0 or above 1"


def _check_contributions(fitted: Any, images: np.ndarray) -> None:
    """Check that what parts add makes the weighted sums, and that boxes are of the image."""
    from visionshare.generators.contributions import whole_boxes

    weights = np.random.default_rng(8).normal(size=(3, fitted.n_features_)).astype(np.float32)
    limits = whole_boxes(1, fitted.image_shape_)[0]
    for family in (fitted, fitted.take(_few_ids(fitted))):
        part = np.ascontiguousarray(weights[:, : family.n_features_])
        for image in images[:2]:
            parts = family.contributions(image, part)
            p = len(parts.values)
            assert len(parts.families) == len(parts.numbers) == p, "a part has no name or number"
            assert parts.amounts.shape == (3, p), f"amounts are of shape {parts.amounts.shape}"
            slack = 1e-5 * (np.abs(parts.amounts).sum(axis=1) + np.abs(parts.rest)).max()
            expected = family.weighted_sums(image[None], part)[0]
            assert_allclose(parts.sums, expected, 1e-4, slack, err_msg="parts make other sums")
            for boxes, n in ((parts.boxes, p), (family.boxes(image), family.n_features_)):
                assert boxes.shape == (n, 4), f"boxes are of shape {boxes.shape}"
                first = boxes[:, ::2]
                last = boxes[:, 1::2]
                assert (first < last).all(), "a box is empty"
                inside = (first >= 0).all() and (last <= limits[1::2]).all()
                assert inside, "a box leaves the image"


def _check_weighted_sums(fitted: Any, images: np.ndarray) -> None:
    """Check the sums of one image, a few and all against features that are written down."""
    weights = np.random.default_rng(7).normal(size=(3, fitted.n_features_)).astype(np.float32)
    for family in (fitted, fitted.take(_few_ids(fitted))):
        part = np.ascontiguousarray(weights[:, : family.n_features_])
        features = family.transform(images).astype(np.float64)
        expected = features @ part.T.astype(np.float64)
        slack = 1e-5 * (np.abs(features) @ np.abs(part.T)).max()
        for n in (1, 2, len(images)):
            sums = family.weighted_sums(images[:n], part, 2)
            assert sums.dtype == np.float32, f"weighted_sums gives {sums.dtype}, not float32"
            message = f"weighted_sums of {n} images"
            assert_allclose(sums, expected[:n], rtol=1e-5, atol=slack, err_msg=message)
        alone = family.weighted_sums(images, part, 1)
        assert_array_equal(family.weighted_sums(images, part, 2), alone, "threads change the bits")


def _check_identity(fitted: Any, images: np.ndarray) -> None:
    for family in (fitted, fitted.take(_few_ids(fitted))):
        state, arrays = family.to_state()
        plain = json.loads(json.dumps(state, allow_nan=False))
        assert plain["family"] == type(fitted).name, "the state names another family"
        for name, array in arrays.items():
            assert array.dtype in (np.float32, np.int64), f"array {name} is {array.dtype}"
        back = type(fitted).from_state(plain, arrays)
        assert_array_equal(back.transform(images), family.transform(images), "the state loses bits")
        assert json.dumps(back.to_state()[0]) == json.dumps(plain), "the state changes"
        assert isinstance(family.describe(0), dict), "describe gives no dict"
        assert "kind" in family.describe(0), "describe does not say the kind"
    n = min(3, fitted.n_features_)
    drawn = fitted.sample(n, np.random.default_rng(5))
    assert len(np.unique(drawn)) == n, "sample repeats itself"
    assert_array_equal(drawn, fitted.sample(n, np.random.default_rng(5)), "sample is not seeded")


def _check_bad_input(fitted: Any, images: np.ndarray) -> None:
    bad_images = [images[:, :-1], images[..., None, None, None], np.full(images.shape, np.nan)]
    for bad in bad_images:
        _check_refused(fitted.transform, bad)
    for bad in (np.array([fitted.n_features_]), np.array([-1]), np.array([0.5])):
        _check_refused(fitted.transform, images, bad)
        _check_refused(fitted.take, bad)


def _check_refused(function: Any, *arguments: Any) -> None:
    try:
        function(*arguments)
    except InputError:
        return
    raise AssertionError(f"{function.__name__} accepts {arguments[-1]!r}")
