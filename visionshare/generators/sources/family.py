"""Scores of predictors that exist already, as features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import (
    FeatureFamily,
    Ids,
    check_dtype,
    check_feature,
    check_features,
    checked_images,
)
from visionshare.generators.checks import check_flag, check_whole
from visionshare.generators.contributions import Contributions, Numbers, whole_boxes
from visionshare.generators.layer_summary import LayerSummary
from visionshare.generators.nested import parts_from_state, parts_to_state
from visionshare.generators.sources.scores import LinearSource, Source, as_source, opposite
from visionshare.generators.states import Arrays, State, StateAndArrays, check_state, family_state

# Images on which a source shows what it gives.
_FEW = 3


@dataclass(eq=False, repr=False)
class SourceClassifiers(FeatureFamily):
    """The scores of other predictors, of any kind, as features.

    Parameters
    ----------
    sources : sequence
        Each a compact classifier; a fitted estimator of scikit-learn with ``decision_function``,
        else ``predict_proba``, else, a regressor, ``predict``; or a function of images (n, ...)
        that returns scores (n,) or (n, c). None of them is fitted or copied.
    macs_per_source : int, optional
        Multiply-accumulates of a source that does not say them in an attribute ``macs``; one for
        each value of an image when omitted.
    opposites : bool, default True
        Whether a source of two scores, one the negative of the other, gives both; when not, the
        second alone. A penalty on squared weights likes a score that it can take twice.

    Attributes
    ----------
    layout_ : ndarray of shape (n_features_, 2), int64
        Source and score of each feature.
    n_features_ : int
    image_shape_ : tuple of int

    Notes
    -----
    An estimator that was fitted to rows is given images as rows, with unscaled values; any other
    source the images themselves. The columns of compact classifiers have the same bits
    in whatever batches images come; those of another source as far as the source's own have.
    Only compact classifiers can be written to a file.

    References
    ----------
    I. Kuzborskij, F. Orabona, B. Caputo, "Scalable greedy algorithms for transfer learning",
    Computer Vision and Image Understanding 156, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> images = np.arange(8.0).reshape(2, 2, 2)
    >>> family = SourceClassifiers([lambda images: images.mean(axis=(1, 2))]).fit(images)
    >>> family.transform(images).tolist(), family.macs()
    ([[1.5], [5.5]], 4)
    """

    name = "sources"
    sources: Sequence[Any] = ()
    macs_per_source: int | None = None
    opposites: bool = True

    def __sklearn_clone__(self) -> SourceClassifiers:
        # Sources are fitted: a copy by scikit-learn would come back unfitted.
        return type(self)(self.sources, self.macs_per_source, self.opposites)

    def check_parameters(self) -> None:
        """Check what can be checked without images."""
        if not isinstance(self.sources, (list, tuple)) or not self.sources:
            raise InputError("sources", self.sources, "a list of one or more predictors")
        check_flag("opposites", self.opposites)
        check_whole("macs_per_source", self.macs_per_source, least=0, optional=True)

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> SourceClassifiers:
        """Ask each source for the scores of a few images, to see how many there are.

        Raises
        ------
        InputError
            If something is no source, or takes or gives something else.
        """
        self.check_parameters()
        self._see(images)
        images = np.asarray(images)
        sources = [as_source(source, images[:_FEW]) for source in self.sources]
        pairs = [
            (s, c)
            for s, source in enumerate(sources)
            for c in range(0 if self.opposites or not opposite(source) else 1, source.n_outputs)
        ]
        return self._with(sources, np.array(pairs, np.int64).reshape(-1, 2))

    def _with(self, sources: Sequence[Source], layout: np.ndarray) -> SourceClassifiers:
        self._sources = sources
        self.layout_ = layout
        self.n_features_ = len(layout)
        return self

    def transform(self, images: np.ndarray, features: Ids = None, n_jobs: int = 1) -> np.ndarray:
        """Return features (n_images, n), float32; each source is asked once."""
        layout = self.layout_[check_features(features, self.n_features_)]
        images = checked_images(images, self.image_shape_)
        out = np.empty((len(images), len(layout)), np.float32)
        if len(images) == 0:
            return out
        for s in np.unique(layout[:, 0]):
            source = self._sources[s]
            columns = layout[:, 0] == s
            # Scores beyond float32 are refused below.
            with np.errstate(over="ignore", invalid="ignore"):
                out[:, columns] = source.scores(images, n_jobs)[:, layout[columns, 1]]
            if not np.isfinite(out[:, columns]).all():
                raise InputError("sources", f"NaN or infinity from {source.name}", "finite scores")
        return out

    def contributions(
        self, image: np.ndarray, weights: np.ndarray, numbers: Numbers = None
    ) -> Contributions:
        """Return what the features of sources add that are compact classifiers, and other scores.

        The features of a source are numbered from 1; scores of other predictors as they are here.
        """
        weights = np.asarray(weights, np.float64)
        ordered = np.arange(1, self.n_features_ + 1) if numbers is None else np.asarray(numbers)
        parts = []
        for s, source in enumerate(self._sources):
            ids = np.flatnonzero(self.layout_[:, 0] == s)
            own = weights[:, ids]
            outputs = self.layout_[ids, 1]
            if isinstance(source, LinearSource):
                of_source = own @ source.weights[outputs].astype(np.float64)
                features = source.family.contributions(image, of_source)
                parts.append(features.plus(own @ source.intercept[outputs]))
            else:
                values = self.transform(np.asarray(image)[None], ids)[0]
                boxes = whole_boxes(len(ids), self.image_shape_)
                parts.append(Contributions.of(self.name, values, own, boxes, ordered[ids]))
        return Contributions.joined(parts)

    def transform_columns(
        self, images: np.ndarray, features: Ids = None, n_jobs: int = 1, dtype: str = "float32"
    ) -> np.ndarray:
        check_dtype(dtype)
        columns = self.transform(images, features, n_jobs).T
        if dtype == "float16" and np.abs(columns).max(initial=0) > np.finfo(np.float16).max:
            raise InputError("dtype", dtype, "'float32' for scores beyond 65504")
        return np.ascontiguousarray(columns, dtype)

    def block_ids(self, features: np.ndarray) -> list[np.ndarray]:
        """Return these ids by source: all scores of a source cost as much as one."""
        ids = check_features(features, self.n_features_)
        source = self.layout_[ids, 0]
        return [ids[source == s] for s in np.unique(source)]

    def _costs(self) -> np.ndarray:
        """Return the multiply-accumulates of each source."""
        other = self.macs_per_source
        other = int(np.prod(self.image_shape_)) if other is None else int(other)
        known = [source.macs() for source in self._sources]
        return np.array([other if cost is None else cost for cost in known], np.int64)

    def macs(self, features: Ids = None) -> int:
        """Return the multiply-accumulates per image: each source that is used, once."""
        ids = check_features(features, self.n_features_)
        return int(self._costs()[np.unique(self.layout_[ids, 0])].sum())

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        # Another score of a source that is used already adds nothing.
        costs = self._costs()
        costs[self.layout_[chosen, 0]] = 0
        return costs[self.layout_[features, 0]]

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        sizes = np.array([source.nbytes for source in self._linear()], np.int64)
        sizes[self.layout_[chosen, 0]] = 0
        each = self.layout_.shape[1] * self.layout_.itemsize
        return each + sizes[self.layout_[features, 0]]

    def layer_summaries(self) -> list[LayerSummary]:
        """Return one layer: all numbers of the sources that are compact classifiers."""
        linear = [source for source in self._sources if isinstance(source, LinearSource)]
        held = sum(s.family.n_parameters + s.weights.size + s.intercept.size for s in linear)
        return [LayerSummary(self.name, (self.n_features_,), None, int(held), self.macs())]

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the source's name, which of its scores it is, and for which class."""
        s, output = map(int, self.layout_[check_feature(feature, self.n_features_)])
        source = self._sources[s]
        described = {"kind": "source", "source": s, "name": source.name, "output": output}
        if source.classes is not None:
            described["class"] = source.classes[output]
        return described

    def take(self, features: np.ndarray) -> SourceClassifiers:
        """Return the family restricted to these features; with the sources in use."""
        layout = self.layout_[check_features(features, self.n_features_)].copy()
        used, source_of = np.unique(layout[:, 0], return_inverse=True)
        layout[:, 0] = source_of.reshape(-1)
        sources = tuple(self.sources[s] for s in used)
        chosen = type(self)(sources, self.macs_per_source, self.opposites)
        chosen.image_shape_ = self.image_shape_
        return chosen._with([self._sources[s] for s in used], layout)

    def _linear(self) -> list[LinearSource]:
        """Return the sources, if files can hold them: compact classifiers all."""
        linear = [source for source in self._sources if isinstance(source, LinearSource)]
        if len(linear) < len(self._sources):
            others = [s.name for s in self._sources if not isinstance(s, LinearSource)]
            accepted = (
                "compact classifiers only, for a file: make one of each source (to_classifier), "
                "leave these sources out, or keep columns and classifier in memory"
            )
            raise InputError("sources", ", ".join(others), accepted)
        return linear

    def to_state(self) -> StateAndArrays:
        """Return the states of the sources' families, and their weights as arrays.

        Raises
        ------
        InputError
            If a source is no compact classifier.
        """
        linear = self._linear()
        states, arrays = parts_to_state([source.family for source in linear])
        for s, source in enumerate(linear):
            arrays[f"weights.{s}"] = source.weights
            arrays[f"intercept.{s}"] = source.intercept
        state = family_state(
            self,
            parameters={"macs_per_source": self.macs_per_source},
            parts=states,
            names=[source.name for source in linear],
            classes=[source.classes for source in linear],
        )
        return state, {"layout": self.layout_, **arrays}

    @classmethod
    def from_state(cls, state: State, arrays: Arrays) -> SourceClassifiers:
        check_state(state, arrays, cls.name, {"layout": 2})
        parameters = state.get("parameters")
        if not isinstance(parameters, dict) or set(parameters) != {"macs_per_source"}:
            raise InputError("parameters", parameters, "a value for macs_per_source")
        shape, sources = _linear_sources(state, arrays)
        family = cls(tuple(sources), **parameters)
        check_whole("macs_per_source", family.macs_per_source, least=0, optional=True)
        family.image_shape_ = shape
        layout = arrays["layout"]
        if layout.dtype != np.int64 or layout.shape[1] != 2 or (layout < 0).any():
            raise InputError("layout", layout.shape, "int64 of shape (n, 2), at least 0")
        if (layout[:, 0] >= len(sources)).any():
            raise InputError("layout", "numbers out of range", f"{len(sources)} sources")
        outputs = np.array([source.n_outputs for source in sources], np.int64)
        if (layout[:, 1] >= outputs[layout[:, 0]]).any():
            raise InputError("layout", "numbers out of range", "scores that the sources have")
        return family._with(sources, layout)


def _linear_sources(state: State, arrays: Arrays) -> tuple[tuple[int, ...], list[LinearSource]]:
    """Return the shape of an image and the sources of a description."""
    shape, families = parts_from_state(state, arrays)
    listed = []
    for key in ("names", "classes"):
        values: Any = state.get(key)
        if not isinstance(values, list) or len(values) != len(families):
            raise InputError(key, values, f"a list of {len(families)}, one per source")
        listed.append(values)
    sources = []
    for s, (family, name, classes) in enumerate(zip(families, *listed, strict=True)):
        weights, intercept = (_finite(arrays, f"{part}.{s}") for part in ("weights", "intercept"))
        n = family.n_features_
        k = len(weights)
        if weights.ndim != 2 or weights.shape[1] != n or k == 0:
            raise InputError(f"weights.{s}", weights.shape, f"float32 of shape (k, {n})")
        if intercept.shape != (k,):
            raise InputError(f"intercept.{s}", intercept.shape, f"float32 of shape ({k},)")
        plain = isinstance(classes, list) and all(isinstance(c, (int, float, str)) for c in classes)
        if classes is not None and (not plain or len(classes) != k):
            raise InputError("classes", classes, f"{k} numbers or texts, or null")
        if not isinstance(name, str):
            raise InputError("names", name, "a text")
        sources.append(LinearSource(family, weights, intercept, name, classes))
    return shape, sources


def _finite(arrays: Arrays, name: str) -> np.ndarray:
    array = arrays.get(name)
    given = None if array is None else f"{array.dtype} of shape {array.shape}"
    floats = array is not None and array.dtype == np.float32 and array.ndim > 0
    if array is None or not floats or not np.isfinite(array).all():
        raise InputError(name, given, "an array of finite float32")
    return array
