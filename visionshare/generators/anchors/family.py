"""Anchors: linear functions, whole or tapered, or Gaussians, near points of the examples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.anchors import fitting
from visionshare.generators.base import (
    FeatureFamily,
    Ids,
    check_dtype,
    check_feature,
    check_features,
    check_images,
)
from visionshare.generators.checks import check_choice, check_whole
from visionshare.generators.inputs import check_scaling, fit_scaling, rows_of
from visionshare.generators.states import (
    Arrays,
    State,
    StateAndArrays,
    check_floats,
    check_state,
    family_state,
    unfitted,
)
from visionshare.machine.resources import run_blocks

KINDS = ("linear", "tapered", "gaussian")
_LARGEST_POOL = 1 << 25
# Images of one call of a kernel.
_AT_ONCE = 256
_CHUNK_BYTES = 32 << 20


@dataclass(eq=False, repr=False)
class KernelAnchors(FeatureFamily):
    """Piece-wise linear functions of the inputs, or Gaussians, around anchors.

    An image's vector v is its inputs, scaled and, if wanted, projected by PCA. With kind "linear"
    a pair of an anchor a and a radius r is a group of q + 1 features, 1[‖v − a‖ < r] · [v, 1];
    with kind "tapered" they fade to 0 at the radius, max(0, 1 − ‖v − a‖²/r²) · [v, 1], and
    fine-tuning can move anchors and radii; with kind "gaussian" a pair of an anchor and a width σ
    is a feature, exp(−‖v − a‖²/2σ²). Pairs are numbered by anchor, then by radius or width.

    Parameters
    ----------
    kind : {"linear", "tapered", "gaussian"}, default "linear"
    n_anchors : int, default 200
        Anchors at most: where no more different training examples exist, all of those are taken.
    n_radii : int, default 5
        Radii of an anchor, or widths, 1 to 255.
    n_components : int, optional
        Numbers that a PCA leaves of an image; all inputs when omitted.
    centers : {"kmeans", "sample"}, default "kmeans"
        Anchors are centers of clusters, or different training examples drawn at random.
    scaling : {"unit_variance", "none"}, default "unit_variance"
        Whether inputs are brought to mean 0 and variance 1 first; inputs that are constant in
        training become 0.
    random_state : int, default 0
        Seed.

    Attributes
    ----------
    anchors_ : ndarray of shape (n_anchors_, q), float32
    n_anchors_ : int
    pairs_ : ndarray of shape (n_pairs,), int64
        Anchor of each pair.
    radii_ : ndarray of shape (n_pairs,), float32
        Radius or σ of each pair; the largest float32 is a radius without limit.
    ids_ : ndarray of shape (n_features_,), int64
        (q + 1) · pair + index in [v, 1], the pair for "gaussian".
    components_, mean_ : ndarray of shape (q, p) and (p,), float32, or None
        Of the PCA of scaled inputs.
    input_offset_, input_scale_ : ndarray of shape (p,), float32
    n_features_ : int

    Notes
    -----
    Of R radii the i-th holds the ⌈i m / R⌉ nearest of m training examples, ties included, and lies
    midway to the next one; the last has no limit, as a new example may lie further out than all
    of training and still deserves the plain linear function. Widths are the quantiles i / R of
    the distances between training examples and all anchors together, without zeros.

    References
    ----------
    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass learning with
    feature sharing", NIPS 2011, §4.2 and §7.5.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> family = KernelAnchors(n_anchors=2, n_radii=2, centers="sample", scaling="none").fit(X)
    >>> family.n_features_, family.groups.tolist()
    (8, [0, 0, 1, 1, 2, 2, 3, 3])
    """

    name = "anchors"
    components_: np.ndarray | None = field(init=False)
    mean_: np.ndarray | None = field(init=False)
    kind: str = "linear"
    n_anchors: int = 200
    n_radii: int = 5
    n_components: int | None = None
    centers: str = "kmeans"
    scaling: str = "unit_variance"
    random_state: int = 0

    @property
    def groups(self) -> np.ndarray | None:
        """Number of each feature's pair, None for "gaussian"."""
        return self.ids_ // self._width if self.kind != "gaussian" else None

    @property
    def _width(self) -> int:
        """Number of features per pair."""
        return self.anchors_.shape[1] + 1 if self.kind != "gaussian" else 1

    def check_parameters(self) -> None:
        check_choice("kind", self.kind, KINDS)
        check_choice("centers", self.centers, fitting.CENTERS)
        check_whole("n_anchors", self.n_anchors, most=_LARGEST_POOL)
        check_whole("n_radii", self.n_radii, most=255)
        check_whole("n_components", self.n_components, most=65536, optional=True)
        check_scaling(self.scaling)
        check_whole("random_state", self.random_state, least=0)

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> KernelAnchors:
        """Learn scaling, projection, anchors, and radii or widths.

        Raises
        ------
        InputError
            If a parameter is out of range, there are more components than examples or inputs, or
            the pool is too large to number.
        """
        self.check_parameters()
        images = np.asarray(images)
        X = rows_of(self._see(images))
        self._check_sizes(*X.shape)
        self.input_offset_, self.input_scale_ = fit_scaling(X, self.scaling)
        self.components_ = self.mean_ = None
        if self.n_components is not None:
            scaled = (X - self.input_offset_) * self.input_scale_
            self.components_, self.mean_ = fitting.projection(scaled, int(self.n_components))
        self._prepare_inputs()
        V = self.vectors(images)
        seed = self.random_state
        n_radii = int(self.n_radii)
        anchors = fitting.anchors(V, int(self.n_anchors), self.centers, seed)
        find = fitting.radii if self.kind != "gaussian" else fitting.widths
        pairs = np.repeat(np.arange(len(anchors)), n_radii)
        width = V.shape[1] + 1 if self.kind != "gaussian" else 1
        radii = find(V, anchors, n_radii)
        return self._with(anchors, pairs, radii, np.arange(len(pairs) * width))

    def _check_sizes(self, m: int, p: int) -> None:
        q = p if self.n_components is None else int(self.n_components)
        if self.n_components is not None and q > min(m, p):
            accepted = f"at most {min(m, p)}, for {m} examples of {p} inputs"
            raise InputError("n_components", q, accepted)
        width = q + 1 if self.kind != "gaussian" else 1
        if self.n_anchors * self.n_radii * width > _LARGEST_POOL:
            raise InputError("n_anchors", self.n_anchors, "few enough features to number")

    def _prepare_inputs(self) -> None:
        """Hold scaling and projection as the kernels read them."""
        p = len(self.input_scale_)
        mean = np.zeros(p) if self.mean_ is None else self.mean_
        W = np.empty((0, 0)) if self.components_ is None else self.components_.T
        parts = (self.input_offset_, self.input_scale_, mean, W)
        self._inputs = tuple(np.array(part, np.float64, order="C") for part in parts)

    def _with(
        self, anchors: np.ndarray, pairs: np.ndarray, radii: np.ndarray, ids: np.ndarray
    ) -> KernelAnchors:
        """Take these pairs and features on, and hold them as the kernels read them."""
        self.anchors_ = anchors
        self.pairs_ = pairs
        self.radii_ = radii
        self.ids_ = ids
        self.n_anchors_ = len(anchors)
        self.n_features_ = len(ids)
        self._anchors = np.array(anchors.T, np.float64, order="C")
        square = radii.astype(np.float64) ** 2
        self._limits = np.where(radii == fitting.NO_LIMIT, np.inf, square)
        self._pair, self._part = (part.astype(np.int32) for part in np.divmod(ids, self._width))
        return self

    def vectors(self, images: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return the images' vectors v, (n_images, q) float32.

        Parameters
        ----------
        images : ndarray of shape (n_images, *image_shape_), uint8 or float
        n_jobs : int, default 1
            Threads.
        """
        from visionshare.generators.anchors.kernels import vectors

        images = check_images(images, self.image_shape_)
        q = len(self.input_scale_) if self.components_ is None else len(self.components_)
        out = np.empty((len(images), q), np.float32)

        def block(start: int, stop: int) -> None:
            vectors(rows_of(images[start:stop]), *self._inputs, out[start:stop])

        run_blocks(block, len(images), _AT_ONCE, n_jobs)
        return out

    def bins(self, vectors: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return how many of each anchor's radii do not hold an example, (n_anchors_, n) uint8.

        Radius i of anchor a holds example e where i is at least ``bins[a, e]``, in the same
        arithmetic as :meth:`transform`.

        Parameters
        ----------
        vectors : ndarray of shape (n, q), float32
            As :meth:`vectors` gives them.
        n_jobs : int, default 1
            Threads.

        Raises
        ------
        InputError
            If the family is Gaussian, or not all its pairs and features are there in order.
        """
        from visionshare.generators.anchors.kernels import bins

        n = self.n_anchors_
        radii = len(self.pairs_) // max(1, self.n_anchors_)
        whole = self.kind != "gaussian" and 0 < radii <= 255
        whole = whole and np.array_equal(self.pairs_, np.repeat(np.arange(n), radii))
        whole = whole and np.array_equal(self.ids_, np.arange(len(self.pairs_) * self._width))
        limits = self._limits.reshape(n, -1) if whole else np.empty((0, 0))
        if not whole or (limits[:, 1:] < limits[:, :-1]).any():
            given = f"{self.kind}, {self.n_features_} features"
            raise InputError("family", given, "all features of piece-wise linear anchors, in order")
        out = np.empty((n, len(vectors)), np.uint8)

        def block(start: int, stop: int) -> None:
            bins(vectors[start:stop], self._anchors, limits, out[:, start:stop])

        run_blocks(block, len(vectors), _AT_ONCE, n_jobs)
        return out

    def transform(self, images: np.ndarray, features: Ids = None, n_jobs: int = 1) -> np.ndarray:
        family = self if features is None else self.take(features)
        return family._values(family.vectors(images, n_jobs), n_jobs)

    def _values(self, V: np.ndarray, n_jobs: int) -> np.ndarray:
        """Return all features (n, n_features_) of vectors (n, q)."""
        from visionshare.generators.anchors import kernels

        out = np.empty((len(V), self.n_features_), np.float32)
        # Writable, whether learned or read from a file: the kernels are the same then.
        pairs = self.pairs_.copy()
        around: tuple[np.ndarray, ...] = (self._limits, self._pair, self._part)
        kernel = {"linear": kernels.piecewise_linear, "tapered": kernels.tapered}.get(self.kind)
        if kernel is None:
            kernel = kernels.gaussian
            around = (2 * self._limits, self._pair)

        def block(start: int, stop: int) -> None:
            kernel(V[start:stop], self._anchors, pairs, *around, out[start:stop])

        run_blocks(block, len(V), _AT_ONCE, n_jobs)
        return out

    def transform_columns(
        self, images: np.ndarray, features: Ids = None, n_jobs: int = 1, dtype: str = "float32"
    ) -> np.ndarray:
        """Return features transposed, (n, n_images), float32 or float16.

        Sums are of one image, in a fixed order, in float64: a column's bits depend neither on
        what else is asked for nor on batches or threads.
        """
        check_dtype(dtype)
        family = self if features is None else self.take(features)
        step = max(16, _CHUNK_BYTES // max(1, 4 * family.n_features_))
        V = family.vectors(images, n_jobs)
        out = np.empty((family.n_features_, len(V)), dtype)
        for i in range(0, len(V), step):
            out[:, i : i + step] = family._values(V[i : i + step], n_jobs).T
        return out

    def block_ids(self, features: np.ndarray) -> list[np.ndarray]:
        """Return these ids by anchor: its features share the distance."""
        ids = check_features(features, self.n_features_)
        anchor = self.pairs_[self._pair[ids]]
        order = np.argsort(anchor, kind="stable")
        return np.split(ids[order], np.flatnonzero(np.diff(anchor[order])) + 1)

    def macs(self, features: Ids = None) -> int:
        """Return the multiply-accumulates per image.

        Scaling is counted once (p), so is the projection (p · q), and each anchor once (q, its
        distance), however many of its radii are used. A linear feature itself is only v let
        through or not, and costs nothing more; nor is the exponential of a Gaussian counted.
        """
        ids = check_features(features, self.n_features_)
        if len(ids) == 0:
            return 0
        anchors = np.unique(self.pairs_[self._pair[ids]])
        return self._input_macs + self.anchors_.shape[1] * len(anchors)

    @property
    def _input_macs(self) -> int:
        """Multiply-accumulates of scaling and projection."""
        p = len(self.input_scale_)
        q = self.anchors_.shape[1]
        return p * (self.scaling != "none") + p * q * (self.components_ is not None)

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        first = 0 if len(chosen) else self._input_macs
        return first + self.anchors_.shape[1] * self._new(chosen, features)[1].astype(np.int64)

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        new_pair, new_anchor = self._new(chosen, features)
        pair = self.pairs_.itemsize + self.radii_.itemsize
        inputs = (self.input_offset_, self.input_scale_, self.components_, self.mean_)
        held = sum(array.nbytes for array in inputs if array is not None)
        first = self.ids_.itemsize + (0 if len(chosen) else held)
        return first + pair * new_pair + self.anchors_[:1].nbytes * new_anchor

    def _new(self, chosen: np.ndarray, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return whether the pair, and the anchor, of features is that of no chosen one."""
        pairs = self._pair[features]
        there = np.unique(self._pair[chosen])
        new_anchor = ~np.isin(self.pairs_[pairs], self.pairs_[there])
        return ~np.isin(pairs, there), new_anchor

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the function, the anchor as an image, and the radius (None: no limit) or width.

        A linear feature has the index in v of the number that it lets through, None for the
        constant.
        """
        number = check_feature(feature, self.n_features_)
        pair = int(self._pair[number])
        part = int(self._part[number])
        radius = float(self.radii_[pair])
        described = {
            "kind": "anchor",
            "function": self.kind,
            "anchor": self._picture(self.anchors_[self.pairs_[pair]]),
        }
        if self.kind == "gaussian":
            return {**described, "width": radius}
        limit = None if radius == fitting.NO_LIMIT else radius
        return {**described, "radius": limit, "input": part if part < self._width - 1 else None}

    def _picture(self, v: np.ndarray) -> np.ndarray:
        """Return the image (before scaling) whose vector is nearest to v."""
        if self.components_ is not None:
            v = v @ self.components_ + self.mean_
        scale = self.input_scale_
        x = np.where(scale == 0, 0, v / np.where(scale == 0, 1, scale)) + self.input_offset_
        return x.astype(np.float32).reshape(self.image_shape_)

    def check_tunable(self) -> None:
        """Check that fine-tuning can move anchors and radii: a hard border has no gradient."""
        check_choice("kind", self.kind, ("tapered", "gaussian"))

    def with_own_anchors(
        self, anchors: np.ndarray | None = None, radii: np.ndarray | None = None
    ) -> KernelAnchors:
        """Return the same features, each pair with an anchor of its own.

        Parameters
        ----------
        anchors : ndarray of shape (n_pairs, q), optional
            Those of the pairs; the same as before when omitted.
        radii : ndarray of shape (n_pairs,), optional
        """
        other = self._like("input_offset_", "input_scale_", "components_", "mean_", "_inputs")
        anchors = self.anchors_[self.pairs_] if anchors is None else anchors
        radii = self.radii_ if radii is None else radii
        return other._with(anchors.copy(), np.arange(len(radii)), radii.copy(), self.ids_)

    def take(self, features: np.ndarray) -> KernelAnchors:
        chosen = check_features(features, self.n_features_)
        pairs, pair_of = np.unique(self._pair[chosen], return_inverse=True)
        anchors, anchor_of = np.unique(self.pairs_[pairs], return_inverse=True)
        ids = self._width * pair_of.reshape(-1).astype(np.int64) + self._part[chosen]
        inputs = ("input_offset_", "input_scale_", "components_", "mean_", "_inputs")
        other = self._like(*inputs)
        return other._with(self.anchors_[anchors], anchor_of.reshape(-1), self.radii_[pairs], ids)

    def to_state(self) -> StateAndArrays:
        """Return parameters as plain values; scaling, projection, anchors and pairs as arrays."""
        arrays = {
            "offset": self.input_offset_,
            "scale": self.input_scale_,
            "anchors": self.anchors_,
            "pairs": self.pairs_,
            "radii": self.radii_,
            "ids": self.ids_,
        }
        if self.components_ is not None and self.mean_ is not None:
            arrays |= {"components": self.components_, "mean": self.mean_}
        return family_state(self, parameters=self.get_params()), arrays

    @classmethod
    def from_state(cls, state: State, arrays: Arrays) -> KernelAnchors:
        dimensions = {"offset": 1, "scale": 1, "anchors": 2, "pairs": 1, "radii": 1, "ids": 1}
        family = unfitted(cls, state, arrays, dimensions)
        p = q = int(np.prod(family.image_shape_))
        sizes: dict[str, tuple[int, ...]] = {"offset": (p,), "scale": (p,)}
        family.components_ = family.mean_ = None
        if family.n_components is not None:
            q = family.n_components
            check_state(state, arrays, cls.name, {"components": 2, "mean": 1})
            sizes |= {"components": (q, p), "mean": (p,)}
            family.components_ = arrays["components"]
            family.mean_ = arrays["mean"]
        sizes |= {"anchors": (len(arrays["anchors"]), q), "radii": arrays["pairs"].shape}
        check_floats(arrays, sizes)
        family.input_offset_ = arrays["offset"]
        family.input_scale_ = arrays["scale"]
        family._prepare_inputs()
        return family._checked(*(arrays[name] for name in ("anchors", "pairs", "radii", "ids")))

    def _checked(
        self, anchors: np.ndarray, pairs: np.ndarray, radii: np.ndarray, ids: np.ndarray
    ) -> KernelAnchors:
        """Take on what a file says, once it fits together."""
        if (radii <= 0).any():
            raise InputError("radii", float(radii.min()), "numbers above 0")
        width = anchors.shape[1] + 1 if self.kind != "gaussian" else 1
        counts = {"pairs": (pairs, len(anchors)), "ids": (ids, len(pairs) * width)}
        for name, (numbers, count) in counts.items():
            if numbers.dtype != np.int64 or (numbers < 0).any() or (numbers >= count).any():
                raise InputError(name, numbers.dtype, f"int64 from 0 to {count - 1}")
        return self._with(anchors, pairs, radii, ids)
