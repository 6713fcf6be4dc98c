"""What a recipe may say, checked before any work is done."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from visionshare.datasets.preprocessing import Preprocessing

__all__ = ["LEARNERS", "LearnerPart", "PoolFile", "Recipe", "as_settings"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CutPart(_Strict):
    """How patches are cut from textures, see :class:`visionshare.datasets.Cut`."""

    size: int = Field(default=16, ge=2, le=4096)
    per_class: int = Field(default=1000, ge=1)
    seed: int = Field(default=0, ge=0)


class FontsPart(_Strict):
    """How characters are rendered from fonts, see :class:`visionshare.datasets.Fonts`."""

    classes: Literal[36, 62] = 36
    folders: list[str] = []
    system: bool = False
    tests: list[str] = []
    left_out: list[str] = []
    per_class: int = Field(default=300, ge=1)
    per_class_test: int = Field(default=50, ge=1)
    points: list[float] = Field(default=[10.0, 26.0], min_length=2, max_length=2)
    dpi: int = Field(default=200, ge=1)
    rotation: float = Field(default=3.0, ge=0)
    shear: float = Field(default=0.08, ge=0)
    scale: float = Field(default=0.08, ge=0)
    elastic: float = Field(default=1.0, ge=0)
    seed: int = Field(default=0, ge=0)


class DataPart(_Strict):
    """Which images: a name of the catalogue, a file or a folder.

    ``held_out``: share of the training images of each class that teach nothing and are judged in
    place of the test images, the same ones for every seed: for choosing settings.
    """

    source: str
    cut: CutPart | None = None
    fonts: FontsPart | None = None
    height: int | None = Field(default=None, ge=1, le=4096)
    width: int | None = Field(default=None, ge=1, le=4096)
    mode: Literal["gray", "color"] = "gray"
    fit: Literal["resize", "center"] = "resize"
    classes: list[str] | None = Field(default=None, min_length=2)
    per_class: int | None = Field(default=None, ge=1)
    limit: int | None = Field(default=None, ge=1)
    held_out: float = Field(default=0.0, ge=0, lt=1)


class PreprocessingPart(_Strict):
    """How pictures are prepared, see :class:`visionshare.datasets.Preprocessing`."""

    polarity: str = "as_is"
    contrast: bool = False
    crop: bool = False
    threshold: float = 0.3
    fit: str = "resize"
    margin: int = 0
    center: str = "box"

    @model_validator(mode="after")
    def _sound(self) -> PreprocessingPart:
        Preprocessing(**self.model_dump())
        return self


class FeaturePart(_Strict):
    """Which pool of features, and what to change in it."""

    pool: str
    parameters: dict[str, Any] = {}


class PoolPart(_Strict):
    """One part of a pool: another pool, and what to change in it."""

    pool: str
    name: str | None = None
    parameters: dict[str, Any] = {}


class PoolFile(_Strict):
    """A pool of features: a family and its parameters, or parts that are pools themselves."""

    family: str
    description: str = ""
    parameters: dict[str, Any] = {}
    parts: list[PoolPart] = []


class StorePart(_Strict):
    """How columns are kept."""

    where: Literal["auto", "memory", "disk"] = "auto"
    dtype: Literal["float16", "float32"] = "float16"
    memory: str | int = "4GiB"


class SourcesPart(_Strict):
    """Classifiers whose scores are features too: saved ones, and one for each of some classes.

    The classes are of the recipe's own data, and each is learned against the others.
    """

    files: list[str] = []
    classes: list[str] = []
    pool: str = "pixels"
    rounds: int = Field(default=20, ge=1)
    alpha: float = Field(default=1e-3, ge=0)

    @model_validator(mode="after")
    def _some_sources(self) -> SourcesPart:
        if not self.files and len(self.classes) < 2:
            raise ValueError("sources: files are wanted, or two classes or more to learn")
        return self


class DrawsPart(_Strict):
    """Fresh draws of a continuous family, for the search "sampled"."""

    n: int = Field(default=500, ge=1)


class ShareBoostPart(_Strict):
    """Settings of the learner, see :class:`visionshare.learners.ShareBoost`."""

    kind: Literal["shareboost"] = "shareboost"
    rounds: int = Field(default=75, ge=1)
    n_backward: int = Field(default=0, ge=0)
    criterion: str = "gradient"
    criterion_options: dict[str, Any] | None = None
    search: str = "exhaustive"
    search_options: dict[str, Any] | None = None
    margin: float = 1.0
    penalty: str = "ridge"
    alpha: float = 1e-4
    beta: float = 100.0
    scaling: str = "unit_variance"
    tol: float = 0.0
    refit_tol: float = 1e-6
    max_iter: int = 300
    validation_fraction: float = 0.0
    patience: int | None = None


class GroupFeaturePart(_Strict):
    """Settings of the learner, see :class:`visionshare.learners.GroupFeatureClassifier`.

    TOML has no None: where the learner takes None for a alpha, ``inf`` stands here.
    """

    kind: Literal["grfl"]
    rounds: int = Field(default=200, ge=1)
    max_features: int | None = Field(default=None, ge=1)
    n_entering: int = Field(default=1, ge=1)
    loss: str = "squared_hinge"
    q: float = 2.0
    alpha: float = 1.0
    shared_alpha: float = math.inf
    search: str = "exhaustive"
    search_options: dict[str, Any] | None = None
    patience: int = Field(default=1, ge=1)
    solver: str = "newton"
    scaling: str = "unit_norm"
    tol: float = 1e-3
    refit_tol: float = 1e-4
    max_iter: int = Field(default=3000, ge=1)


class GreedyTLPart(_Strict):
    """Settings of the learner, see :class:`visionshare.learners.GreedyTL`."""

    kind: Literal["greedytl"]
    rounds: int = Field(default=100, ge=1)
    alpha: float = 1.0
    tol: float = 1e-4
    search: str = "exhaustive"
    search_options: dict[str, Any] | None = None
    class_weight: Literal["balanced"] | None = None
    fit_intercept: bool = True


_FIRST_KIND = "shareboost"
LEARNERS: dict[str, type[_Strict]] = {
    "shareboost": ShareBoostPart,
    "grfl": GroupFeaturePart,
    "greedytl": GreedyTLPart,
}


def _kind(value: Any) -> Any:
    """Return the kind of learner that a table, or a part, is of; the first where it is not said."""
    if isinstance(value, Mapping):
        return value.get("kind", _FIRST_KIND)
    return getattr(value, "kind", _FIRST_KIND)


LearnerPart = Annotated[
    Annotated[ShareBoostPart, Tag("shareboost")]
    | Annotated[GroupFeaturePart, Tag("grfl")]
    | Annotated[GreedyTLPart, Tag("greedytl")],
    Discriminator(_kind),
]


class DeformationPart(_Strict):
    """Deformed copies of the training images, and how much they are deformed."""

    copies: int = Field(ge=0)
    alpha: float = 1.0
    sigma: float = 4.0
    rotation: float = 10.0
    scale: float = 0.1
    shear: float = 0.1


class FineTuningPart(_Strict):
    """How the chosen features move, see :class:`visionshare.learners.FineTuning`.

    ``deformed``: each epoch sees new copies of the images, deformed as [deformations] says.
    ``search_images``: so many images, drawn by class, choose the features; all of them tune.
    """

    epochs: int = 20
    batch: int = 128
    rate: float = 1e-3
    max_features: int | None = None
    products: bool = True
    max_products: int | None = None
    product_rate: float = 3e-4
    warm_up: float = 0.2
    alpha: float = 1e-4
    margin: float = 1.0
    validation_fraction: float = 0.05
    teacher_weight: float = 0.8
    teacher_temperature: float = 3.0
    deformed: bool = False
    search_images: int | None = Field(default=None, ge=1)


class TeacherPart(_Strict):
    """Classifiers learned before, from the same images, whose mean teaches in the fine-tuning.

    What its sections leave out is as in the recipe's own.
    """

    members: int = Field(default=1, ge=1, le=100)
    features: FeaturePart | None = None
    learner: ShareBoostPart | None = None
    fine_tuning: FineTuningPart | None = None


class EarlyExitPart(_Strict):
    """Where images may stop early, see :func:`visionshare.classifier.learn_exit_rule`."""

    tolerance: float = Field(default=5e-4, ge=0, lt=1)
    stages: int = Field(default=6, ge=1)
    fraction: float = Field(default=0.1, gt=0, lt=1)


class Recipe(_Strict):
    """Everything that a training run needs to know.

    ``members``: so many classifiers, of the seeds from ``seed`` · ``members`` on, become one whose
    scores are the mean of theirs.
    """

    name: str
    description: str = ""
    seed: int = Field(default=0, ge=0)
    members: int = Field(default=1, ge=1, le=100)
    data: DataPart
    preprocessing: PreprocessingPart | None = None
    features: FeaturePart
    sources: SourcesPart | None = None
    store: StorePart = StorePart()
    learner: LearnerPart = ShareBoostPart()
    draws: DrawsPart | None = None
    deformations: DeformationPart | None = None
    fine_tuning: FineTuningPart | None = None
    teacher: TeacherPart | None = None
    early_exit: EarlyExitPart | None = None

    @model_validator(mode="after")
    def _one_fit(self) -> Recipe:
        if self.preprocessing is not None and self.data.fit != "resize":
            raise ValueError(f"data.fit: got {self.data.fit!r}; say preprocessing.fit alone")
        return self

    @model_validator(mode="after")
    def _exits_are_judged(self) -> Recipe:
        if self.early_exit is not None and self.learner.kind != "shareboost":
            given = self.learner.kind
            raise ValueError(f'early_exit: needs learner.kind = "shareboost" (got {given!r})')
        return self

    @model_validator(mode="after")
    def _tuning_fits(self) -> Recipe:
        if self.fine_tuning is not None and self.early_exit is not None:
            raise ValueError("early_exit: not with fine_tuning, whose classifier has no prefixes")
        if self.members > 1 and self.early_exit is not None:
            raise ValueError("early_exit: not with members, whose mean has no prefixes")
        if self.teacher is not None and self.fine_tuning is None:
            raise ValueError("teacher: needs [fine_tuning], which it teaches in")
        if self.teacher is not None and self.learner.kind != "shareboost":
            given = self.learner.kind
            raise ValueError(f'teacher: needs learner.kind = "shareboost" (got {given!r})')
        tuned = [self.fine_tuning, None if self.teacher is None else self.teacher.fine_tuning]
        deformed = any(part is not None and part.deformed for part in tuned)
        if deformed and self.deformations is None:
            raise ValueError("fine_tuning.deformed: needs [deformations], which says how much")
        return self

    @model_validator(mode="after")
    def _draws_are_wanted(self) -> Recipe:
        if self.draws is not None and self.learner.search != "sampled":
            given = self.learner.search
            raise ValueError(f'draws: they need learner.search = "sampled" (got {given!r})')
        return self


def as_settings(recipe: Recipe) -> Mapping[str, Any]:
    """Return a recipe as plain nested values that JSON can hold."""
    return _finite(recipe.model_dump(mode="json"))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(held) for key, held in value.items()}
    # JSON has no infinity.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
