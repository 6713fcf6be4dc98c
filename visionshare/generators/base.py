"""What every feature family offers, and the checks of images that all share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from visionshare.errors import InputError

__all__ = [
    "FeatureFamily",
    "added_macs",
    "check_features",
    "check_images",
    "check_state",
    "unfitted",
    "weighted_sums",
]


Family = TypeVar("Family", bound=Any)


class FeatureFamily(Protocol):
    """A pool of candidate features: parameters in the constructor, the rest learned by ``fit``."""

    name: ClassVar[str]
    n_features_: int
    image_shape_: tuple[int, ...]

    @property
    def groups(self) -> np.ndarray | None:
        """Number of each column's group, or None: columns of a group enter together."""
        ...

    def check_parameters(self) -> None:
        """Raise an InputError if a parameter is out of range."""
        ...

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> FeatureFamily:
        """Learn what the family needs from images."""
        ...

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return ``n`` different feature ids."""
        ...

    def evaluate(
        self, images: np.ndarray, features: np.ndarray | None = None, n_jobs: int = 1
    ) -> np.ndarray:
        """Return features (n_images, n), float32."""
        ...

    def evaluate_columns(
        self,
        images: np.ndarray,
        features: np.ndarray | None = None,
        n_jobs: int = 1,
        dtype: str = "float32",
    ) -> np.ndarray:
        """Return the same transposed, (n, n_images), float32 or float16."""
        ...

    def weighted_sums(self, images: np.ndarray, weights: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return sums of all features times weights (k, n), as (n_images, k), float32.

        A family may leave this out where nothing is gained over writing its features down: see
        :func:`weighted_sums`.
        """
        ...

    def block_ids(self, features: np.ndarray) -> list[np.ndarray]:
        """Return these ids in groups that are cheap to evaluate together."""
        ...

    def macs(self, features: np.ndarray | None = None) -> int:
        """Return the multiply-accumulates an image of these features together."""
        ...

    def added_macs(self, chosen: np.ndarray, features: np.ndarray | None = None) -> np.ndarray:
        """Return what each feature alone adds to the cost of the chosen ones, (n,) int64.

        A family may leave this out where features share no work, or few are searched: see
        :func:`added_macs`.
        """
        ...

    def describe(self, feature: int) -> dict[str, Any]:
        """Return plain values and small arrays for pictures and exports."""
        ...

    def take(self, features: np.ndarray) -> FeatureFamily:
        """Return the family restricted to these features, in this order."""
        ...

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return plain values and arrays from which the family can be made again."""
        ...


def added_macs(
    family: Any,
    chosen: np.ndarray,
    features: np.ndarray | None = None,
    starts: np.ndarray | None = None,
) -> np.ndarray:
    """Return what each feature, or each group of features, adds to the cost of the chosen ones.

    Where the family has no method ``added_macs``, its ``macs`` are asked for each feature.

    Parameters
    ----------
    family : FeatureFamily
        Fitted.
    chosen : ndarray of int
        Ids of the features that are there already.
    features : ndarray of int, optional
        Ids of the candidates; all when omitted. One that is chosen already counts as a copy.
    starts : ndarray of int, optional
        Where each group begins among ``features``; every feature is alone when omitted.

    Returns
    -------
    ndarray of int64
        macs(chosen and the candidate) − macs(chosen), an image, of each feature or group.

    Raises
    ------
    InputError
        If an id is no feature of the family.

    Examples
    --------
    >>> from visionshare import RandomFourier
    >>> family = RandomFourier(n_pairs=2).fit(np.eye(3))
    >>> added_macs(family, np.array([0]), np.array([1, 2])).tolist()
    [0, 3]
    """
    chosen = check_features(chosen, family.n_features_)
    ids = check_features(features, family.n_features_)
    sizes = np.ones(len(ids), np.int64) if starts is None else np.diff(np.append(starts, len(ids)))
    first = np.arange(len(ids)) if starts is None else starts

    def together(groups: np.ndarray) -> list[int]:
        before = family.macs(chosen)
        spans = [ids[first[c] : first[c] + sizes[c]] for c in groups]
        return [family.macs(np.concatenate([chosen, span])) - before for span in spans]

    if not hasattr(family, "added_macs"):
        return np.array(together(np.arange(len(first))), np.int64)
    added = np.asarray(family.added_macs(chosen, ids))[first]
    # Features that enter together may share work among themselves.
    several = np.flatnonzero(sizes > 1)
    added[several] = together(several)
    return added


def weighted_sums(
    family: Any, images: np.ndarray, weights: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """Return sums of all features of a family times weights: scores without intercepts.

    Where the family has no method ``weighted_sums``, its features are written down.

    Parameters
    ----------
    family : FeatureFamily
        Fitted.
    images : ndarray of shape (n_images, *image_shape_), uint8 or float
    weights : ndarray of shape (k, n_features_), float32
    n_jobs : int, default 1
        Threads.

    Returns
    -------
    ndarray of shape (n_images, k), float32

    Examples
    --------
    >>> from visionshare import Pixels
    >>> pixels = Pixels().fit(np.zeros((1, 2)))
    >>> weights = np.array([[1, 1], [2, 0]], np.float32)
    >>> weighted_sums(pixels, np.array([[3.0, 4.0]]), weights).tolist()
    [[7.0, 6.0]]
    """
    if hasattr(family, "weighted_sums"):
        return np.asarray(family.weighted_sums(images, weights, n_jobs))
    return np.asarray(np.dot(family.evaluate(images, None, n_jobs), weights.T))


def check_images(images: np.ndarray, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return images as (n, H, W, C), uint8 or float32; vectors become (n, 1, p, 1).

    Parameters
    ----------
    images : ndarray
        (n, p), (n, H, W) or (n, H, W, C), numbers.
    shape : tuple of int, optional
        The shape of one image that is expected.

    Raises
    ------
    InputError
        If the array has another shape, is empty, or holds values that are not finite.
    """
    images = np.asarray(images)
    if images.ndim not in (2, 3, 4) or images.dtype.kind not in "fiub":
        given = f"{images.dtype} of shape {images.shape}"
        raise InputError("images", given, "numbers of shape (n, H, W), (n, H, W, C) or (n, p)")
    if 0 in images.shape[1:]:
        raise InputError("images", images.shape, "images of at least one pixel")
    if shape is not None and images.shape[1:] != tuple(shape):
        raise InputError("images", images.shape, f"images of shape {(len(images), *shape)}")
    if images.dtype.kind == "f" and not np.isfinite(images).all():
        raise InputError("images", "NaN or infinity", "finite values")
    if images.dtype != np.uint8:
        images = images.astype(np.float32, copy=False)
    if images.ndim == 2:
        return images[:, None, :, None]
    return images[..., None] if images.ndim == 3 else images


def check_features(features: np.ndarray | None, n_features: int) -> np.ndarray:
    """Return feature ids as int64; all for None.

    Raises
    ------
    InputError
        If an id is no feature of the family.
    """
    if features is None:
        return np.arange(n_features)
    ids = np.atleast_1d(np.asarray(features))
    if ids.size == 0:
        return ids.astype(np.int64)
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise InputError("features", f"{ids.dtype} of shape {ids.shape}", "a vector of ids")
    if ids.min() < 0 or ids.max() >= n_features:
        raise InputError("features", int(ids.max()), f"ids from 0 to {n_features - 1}")
    return ids.astype(np.int64)


def check_state(
    state: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    family: str,
    wanted: Mapping[str, int],
) -> None:
    """Check that a description is of this family and version 1 and has these arrays.

    Parameters
    ----------
    state, arrays
        The description.
    family : str
        Registered name.
    wanted : mapping of str to int
        Names of arrays and their dimensions.

    Raises
    ------
    InputError
        If it is not.
    """
    if state.get("family") != family or state.get("version") != 1:
        found = (state.get("family"), state.get("version"))
        raise InputError("family", found, f"{family!r}, version 1; a newer library may read it")
    for name, dimensions in wanted.items():
        array = arrays.get(name)
        if array is None or array.ndim != dimensions:
            given = None if array is None else array.shape
            raise InputError(name, given, f"an array of {dimensions} dimensions")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(name, "NaN or infinity", "finite values")


def unfitted(cls: type[Family], state: Mapping[str, Any], later: Collection[str] = ()) -> Family:
    """Return a family with the parameters of a description, checked.

    Parameters
    ----------
    cls : type
        Class of the family.
    state : mapping
        With a table "parameters".
    later : collection of str
        Parameters that older descriptions do not have; they keep their defaults.

    Raises
    ------
    InputError
        If parameters are missing, unknown or out of range.
    """
    parameters, made = state.get("parameters"), cls()
    names = set(made.get_params())
    if not isinstance(parameters, dict) or set(parameters) | set(later) != names:
        raise InputError("parameters", parameters, f"values for {sorted(names)}")
    family = cls(**parameters)
    family.check_parameters()
    return family
