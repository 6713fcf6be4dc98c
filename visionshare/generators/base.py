"""What every feature family offers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.checks import (
    Ids,
    check_dtype,
    check_feature,
    check_features,
    check_images,
    checked_images,
)
from visionshare.generators.climbing import Ascent
from visionshare.generators.contributions import Contributions, Numbers, whole_boxes
from visionshare.generators.costs import Costs
from visionshare.generators.layer_summary import LayerSummary, n_floats
from visionshare.generators.lazy_images import ComputedImages
from visionshare.generators.parameters import Parameters
from visionshare.generators.windows import Windows
from visionshare.machine.resources import product

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.codegen.whole_numbers import WholeFeatures, WholeScores
    from visionshare.generators.pictures import Pictures, Sample
    from visionshare.generators.tuning import Tunable

__all__ = [
    "FeatureFamily",
    "Ids",
    "check_dtype",
    "check_feature",
    "check_features",
    "check_images",
    "checked_images",
]

Family = TypeVar("Family", bound="FeatureFamily")


class FeatureFamily(Parameters, Costs, Windows):
    """A pool of candidate features: parameters in the constructor, the rest learned by ``fit``.

    A new family writes ``fit``, ``transform`` (or ``transform_columns``), ``macs``, ``describe``,
    ``take``, ``to_state`` and ``from_state``. Everything else has a default. Modules ``c`` and
    ``onnx`` beside the family's own, each with a function ``emit``, export its classifiers.

    Attributes
    ----------
    name : str
        The family's name in the registry, in files and in recipes; of the class.
    n_features_ : int
        Number of features of the fitted family.
    image_shape_ : tuple of int
        Shape of one image, as ``fit`` saw it.
    values_ : tuple of (float, float, str)
        The lowest and the highest value that ``fit`` saw; then "bytes", or "other" numbers.

    Examples
    --------
    >>> from visionshare import Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2)))
    >>> family.n_features_, family.transform(np.ones((1, 2, 2)), [0, 3]).tolist()
    (4, [[1.0, 1.0]])
    """

    name: ClassVar[str]
    #: Families that the constructor takes: "none" or "several".
    inner_families: ClassVar[str] = "none"
    #: Features that :meth:`block_ids` puts together at most; all of them for None.
    block_size: ClassVar[int | None] = None
    #: Whether :meth:`tunable` knows gradients in images, as features of maps that move need.
    tunable_on_maps: ClassVar[bool] = False
    #: Whether features are whole numbers: C then needs no rounding to do without floats.
    in_whole_numbers: ClassVar[bool] = False
    n_features_: int
    image_shape_: tuple[int, ...]
    values_: tuple[float, float, str]

    # ---- what a family must have

    @abstractmethod
    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> FeatureFamily:
        """Learn what the family needs from images.

        Parameters
        ----------
        images : ndarray of shape (n, p), (n, H, W) or (n, H, W, C)
        y : ndarray of shape (n,), optional
            Classes, for families that learn from them.
        """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        neither = (
            cls.transform is FeatureFamily.transform
            and cls.transform_columns is FeatureFamily.transform_columns
        )
        if neither:
            raise TypeError(f"{cls.__name__} needs transform, or transform_columns")

    def transform(self, images: np.ndarray, features: Ids = None, n_jobs: int = 1) -> np.ndarray:
        """Return features (n_images, n), float32.

        A family writes this, or :meth:`transform_columns`; the other follows.

        Parameters
        ----------
        images : ndarray of shape (n_images, *image_shape_), uint8 or float
        features : ndarray of int, optional
            Ids; all when omitted.
        n_jobs : int, default 1
            Threads; the result does not depend on it.
        """
        return np.ascontiguousarray(self.transform_columns(images, features, n_jobs).T)

    @abstractmethod
    def describe(self, feature: int) -> dict[str, Any]:
        """Return plain values and small arrays for pictures; "kind" says what it is."""

    @abstractmethod
    def take(self: Family, features: np.ndarray) -> Family:
        """Return the family restricted to these features, in this order."""

    @abstractmethod
    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return plain values and arrays from which the family can be made again."""

    @classmethod
    @abstractmethod
    def from_state(
        cls: type[Family], state: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> Family:
        """Return the family that :meth:`to_state` described.

        Raises
        ------
        InputError
            If the description is of another family or does not fit together.
        """

    # ---- what has a default

    @property
    def groups(self) -> np.ndarray | None:
        """Number of each column's group, or None: columns of a group enter together."""
        return None

    def check_parameters(self) -> None:
        """Check all parameters without images; raise an InputError if one is out of range."""
        return

    @classmethod
    def from_families(cls, families: Sequence[FeatureFamily]) -> FeatureFamily:
        """Return an unfitted family of other unfitted families, for pools of several parts.

        Raises
        ------
        InputError
            If the family takes no others.
        """
        raise InputError("family", cls.name, "a family of other families")

    def fit_transform(self, images: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
        """Fit the family to images and return their features (n_images, n_features_)."""
        return self.fit(images, y).transform(images)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each feature, as scikit-learn's transformers do: "patches0", ….

        Parameters
        ----------
        input_features : object
            Ignored: pixels have no names.

        Raises
        ------
        NotFittedError
            If the family is not fitted.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "n_features_")
        return np.array([f"{self.name}{j}" for j in range(self.n_features_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import TransformerTags

        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags(preserves_dtype=[])
        tags.input_tags.three_d_array = True
        return tags

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return ``n`` different feature ids."""
        return rng.choice(self.n_features_, n, replace=False)

    def transform_columns(
        self, images: np.ndarray, features: Ids = None, n_jobs: int = 1, dtype: str = "float32"
    ) -> np.ndarray:
        """Return features transposed, (n, n_images), float32 or float16.

        Parameters
        ----------
        images : ndarray of shape (n_images, *image_shape_), uint8 or float
        features : ndarray of int, optional
            Ids; all when omitted.
        n_jobs : int, default 1
            Threads; the result does not depend on it.
        dtype : {"float32", "float16"}, default "float32"
        """
        check_dtype(dtype)
        return np.ascontiguousarray(self.transform(images, features, n_jobs).T, dtype)

    def weighted_sums(self, images: np.ndarray, weights: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return sums of all features times weights: scores without intercepts.

        Parameters
        ----------
        images : ndarray of shape (n_images, *image_shape_), uint8 or float
        weights : ndarray of shape (k, n_features_), float32
        n_jobs : int, default 1
            Threads.

        Returns
        -------
        ndarray of shape (n_images, k), float32
        """
        # Sums that overflow are noticed, and refused, where they become scores.
        with np.errstate(over="ignore", invalid="ignore"):
            return product(self.transform(images, None, n_jobs), weights.T)

    def contributions(
        self, image: np.ndarray, weights: np.ndarray, numbers: Numbers = None
    ) -> Contributions:
        """Return what the features of one image add to weighted sums: value × weight, and where.

        Parameters
        ----------
        image : ndarray of shape image_shape_, uint8 or float
        weights : ndarray of shape (k, n_features_)
        numbers : sequence of int, optional
            Of the features of the family, as a report calls them; from 1 when omitted.

        Raises
        ------
        InputError
            If the image is of another shape.
        """
        image = np.asarray(image)
        values = self.transform(image[None])[0]
        return Contributions.of(self.name, values, weights, self.boxes(image), numbers)

    def boxes(self, image: np.ndarray) -> np.ndarray:
        """Return the pixels of one image that each feature responded to; all where unknown.

        Parameters
        ----------
        image : ndarray of shape image_shape_, uint8 or float

        Returns
        -------
        ndarray of shape (n_features_, 4), float64
            First row, last row (exclusive), first column, last column (exclusive).
        """
        return whole_boxes(self.n_features_, self.image_shape_)

    def block_ids(self, features: np.ndarray) -> list[np.ndarray]:
        """Return these ids in groups that are cheap to transform together."""
        ids = check_features(features, self.n_features_)
        size = self.block_size or max(1, len(ids))
        return [ids[start : start + size] for start in range(0, len(ids), size)]

    def layer_summaries(self) -> list[LayerSummary]:
        """Return what each layer of the family gives, holds and costs; a family is one layer."""
        held = n_floats(self.to_state()[1].values())
        return [LayerSummary(self.name, (self.n_features_,), None, held, self.macs())]

    @property
    def origins(self) -> tuple[str, ...]:
        """Networks of others that the features come from, with their licenses, a sentence each."""
        return ()

    @property
    def n_parameters(self) -> int:
        """Number of learned numbers: of all layers."""
        return sum(layer.parameters for layer in self.layer_summaries())

    @property
    def is_continuous(self) -> bool:
        """Whether features have continuous parameters that can be drawn: ``draw`` and ``at``."""
        return False

    @property
    def features_per_draw(self) -> int:
        """Number of features that one draw of parameters stands for."""
        return 1

    def climb(self, parameters: np.ndarray, ascent: Ascent) -> np.ndarray:
        """Return parameters (p,) of one draw that promise more, after steps uphill from these."""
        raise InputError("steps", ascent.steps, f"0, for the family {self.name!r}")

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return parameters of ``n`` random features or groups, (n, p) float32."""
        raise InputError("family", self.name, "a family with continuous parameters")

    def at(self: Family, parameters: np.ndarray) -> Family:
        """Return the finite family of these parameters, as :meth:`draw` gives them."""
        raise InputError("family", self.name, "a family with continuous parameters")

    def check_tunable(self) -> None:
        """Check that the parameters of such a family can be moved by gradients.

        Raises
        ------
        InputError
            If they cannot.
        """
        raise InputError("family", self.name, "a family that fine-tuning can move")

    def tunable(self) -> Tunable:
        """Return the features of the fitted family as a function of their parameters.

        By default from the function ``tunable`` of the module ``tuning`` beside the family's own.

        Raises
        ------
        InputError
            If the parameters of such a family cannot be moved.
        """
        self.check_tunable()
        module = self._module_beside("tuning", "a family that fine-tuning can move")
        return module.tunable(self)

    def to_c(self, writer: Writer) -> Unit:
        """Return the family as a unit of C; by default from the module ``c`` beside its own.

        Raises
        ------
        InputError
            If there is none, or these features cannot be written in C.
        """
        module = self._module_beside("c", "a family that can be written in C")
        return module.emit(self, writer)

    def to_whole_features(self, writer: Writer) -> WholeFeatures | None:
        """Return the family in C in whole numbers; None where only floats are written.

        By default from the function ``features`` of a module ``whole`` beside the family's own.
        """
        function = self._whole("features")
        return None if function is None else function(self, writer)

    def to_whole_scores(
        self, writer: Writer, weights: np.ndarray, intercept: np.ndarray
    ) -> WholeScores | None:
        """Return scores in C in whole numbers; None where only floats are written.

        By default from the function ``scores`` of a module ``whole`` beside the family's own, else
        weighted sums of its features.

        Parameters
        ----------
        writer : Writer
        weights : ndarray of shape (k, n_features_), float32
        intercept : ndarray of shape (k,), float32
        """
        from visionshare.codegen.whole_numbers import weighted_scores

        function = self._whole("scores")
        if function is not None:
            return function(self, writer, weights, intercept)
        features = self.to_whole_features(writer)
        return None if features is None else weighted_scores(features, writer, weights, intercept)

    def to_onnx(self, graph: Graph) -> str:
        """Return the name of the features in a graph; by default from the module ``onnx``.

        Raises
        ------
        InputError
            If there is none, or these features cannot be written as ONNX.
        """
        module = self._module_beside("onnx", "a family that can be written as ONNX")
        return module.emit(self, graph)

    def pictures(self, sample: Sample) -> Pictures:
        """Return what a report draws; by default from the module ``pictures`` beside the family's.

        Parameters
        ----------
        sample : Sample
            Images, and what the family sees of them.
        """
        from visionshare.generators.pictures import Pictures

        try:
            module = self._module_beside("pictures", "a family with pictures")
        except InputError:
            return Pictures()
        return module.pictures(self, sample)

    def _like(self: Family, *attributes: str) -> Family:
        """Return a family of the same parameters and image shape, with these attributes as here."""
        other = type(self)(**self.get_params(deep=False))
        for name in ("image_shape_", *attributes):
            setattr(other, name, getattr(self, name))
        return other

    def _see(self, images: Any) -> Any:
        """Take on the shape of one image; return the images checked, (n, H, W, C)."""
        # Images that are computed when they are asked for stay so.
        computed = isinstance(images, ComputedImages)
        images = images if computed else np.asarray(images)
        checked = images.raster() if computed else check_images(images)
        if len(images) == 0:
            raise InputError("images", images.shape, "at least one image")
        self.image_shape_ = tuple(int(side) for side in images.shape[1:])
        if images.ndim > 2 and images.dtype == np.uint8:
            self.values_ = (0.0, 255.0, "bytes")
        elif images.ndim > 2 and not computed:
            self.values_ = (float(images.min()), float(images.max()), "other")
        return checked

    def _whole(self, name: str) -> Any:
        """Return a function of the module ``whole`` beside the family's own, or None."""
        try:
            module = self._module_beside("whole", "a family that computes in whole numbers")
        except InputError:
            return None
        return getattr(module, name, None)

    def _module_beside(self, module: str, accepted: str) -> ModuleType:
        """Return a module of the package that the family's class stands in."""
        package = type(self).__module__.rpartition(".")[0]
        name = f"{package}.{module}"
        try:
            # A class of a script stands in no package.
            if package:
                return import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
        raise InputError("family", self.name, accepted)
