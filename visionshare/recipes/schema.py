"""What a recipe may say, checked before any work is done."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from pydantic import Field, create_model, field_validator, model_validator

from visionshare.errors import InputError
from visionshare.machine.resources import parse_size
from visionshare.recipes.registry import DEFAULT_LEARNER, LearnerSection, learner_section
from visionshare.recipes.sections import Section, section_of

# What a search chooses.
_SEARCHED = frozenset(
    {
        "members", "temperature", "thresholds", "features", "draws", "deformations", "fine_tuning",
        "quantization", "early_exit",
    }
)  # fmt: skip
# A recipe's name is also that of a folder.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class DataPart(Section):
    """Which images: a name of the catalog, a file or a folder."""

    # The default is not checked: a recipe for pictures of one's own says nothing.
    source: str = Field(default="", min_length=1)
    cut: Any = None
    fonts: Any = None
    height: int | None = Field(default=None, ge=1, le=4096)
    width: int | None = Field(default=None, ge=1, le=4096)
    mode: Literal["gray", "color"] = "gray"
    fit: Literal["resize", "center"] = "resize"
    classes: list[str] | None = Field(default=None, min_length=2)
    per_class: int | None = Field(default=None, ge=1)
    limit: int | None = Field(default=None, ge=1)
    held_out: float = Field(default=0.0, ge=0, lt=1)
    test_fraction: float | None = Field(default=None, ge=0, lt=1)
    skip_broken: bool = False
    groups: str | None = Field(default=None, min_length=1)
    target: str | None = Field(default=None, min_length=1)
    period: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    labels: list[str] | None = Field(default=None, min_length=1)

    def check(self) -> None:
        """Check that a size has both sides."""
        if (self.height is None) != (self.width is None):
            given, missing = ("width", "height") if self.height is None else ("height", "width")
            raise InputError(missing, None, f"a number of pixels together with data.{given}")


class FeaturePart(Section):
    """Which pool of features, and what to change in it."""

    pool: str
    parameters: dict[str, Any] = Field(default={})


class PoolPart(Section):
    """One part of a pool: another pool, and what to change in it."""

    pool: str
    name: str | None = None
    parameters: dict[str, Any] = Field(default={})


class PoolFile(Section):
    """A pool of features: a family and its parameters, parts that are pools, or layers."""

    family: str
    description: str = ""
    parameters: dict[str, Any] = Field(default={})
    parts: list[PoolPart] = Field(default=[])
    layers: list[dict[str, Any]] = Field(default=[])


class StorePart(Section):
    """How columns are kept."""

    where: Literal["auto", "memory", "disk"] = "auto"
    dtype: Literal["float16", "float32"] = "float16"
    memory: str | int = "4GiB"
    partitions: int | None = Field(default=None, ge=1)

    def check(self) -> None:
        """Check the bound of the memory."""
        parse_size(self.memory)


class DrawsPart(Section):
    """Fresh draws of a continuous family, for the search "sampled"."""

    n: int = Field(default=500, ge=1)


class DeformationPart(Section):
    """Random copies of the training images, see :class:`visionshare.datasets.Augmentation`."""

    copies: int = Field(ge=0)


class TuningPart(Section):
    """How the chosen features move, see :class:`visionshare.learners.FineTuning`."""

    deformed: bool = False
    search_images: int | None = Field(default=None, ge=1)


class QuantizationPart(Section):
    """In how few bits a classifier is learned, see :class:`visionshare.learners.Quantization`."""

    max_flash: str | int | None = None

    def check(self) -> None:
        """Check the bound of the flash."""
        if self.max_flash is not None:
            parse_size(self.max_flash, "max_flash")


class EarlyExitPart(Section):
    """Where images may stop early, see :func:`visionshare.classifier.learn_exit_rule`."""

    fraction: float = Field(default=0.1, gt=0, lt=1)

    def check(self) -> None:
        """Check what the rule is learned with."""
        from visionshare.classifier.exit_learning import check_exit_options

        check_exit_options(**self.as_arguments())


class TeacherPart(Section):
    """Who teaches, see :mod:`visionshare.recipes.teachers`, and of which unlabeled pictures.

    ``source``: "self" for ``members`` classifiers of the recipe with ``width`` times the templates,
    or of another ``recipe`` on the same pictures; "pretrained"; or the file of a classifier or of a
    model in ONNX. ``copies``: deformed copies of each picture of which "pretrained" says what they
    show, fewer of many pictures.
    """

    source: str = Field(min_length=1)
    members: int = Field(default=3, ge=1, le=5)
    width: float = Field(default=2.0, ge=1, le=8)
    recipe: str | None = Field(default=None, min_length=1)
    copies: int = Field(default=5, ge=0, le=20)
    unlabeled: str | None = Field(default=None, min_length=1)


class UnknownPart(Section):
    """When pictures of no class are refused, see :class:`visionshare.classifier.UnknownRule`.

    ``reject``: share of known pictures that may be refused. ``label``: what refused ones are
    called. ``pictures``: a folder of unknown pictures, besides the class called ``label``.
    ``background``: a folder of photographs that show nothing of any class.
    """

    reject: float = Field(default=0.01, gt=0, lt=1)
    label: str = "unknown"
    pictures: str | None = None
    background: str | None = None


class SearchPart(Section):
    """What a search may cost, as :class:`visionshare.ImageClassifier` takes it.

    ``budget``: multiply-accumulates, or a table of limits. ``time``: seconds. ``variants`` of the
    best layers are tried too.
    """

    budget: Any = None
    time: float | None = Field(default=None, gt=0)
    variants: list[Literal["residual", "strided", "depthwise", "means"]] = Field(default=[])
    optimizer: Literal["adam", "muon"] = "adam"


class Recipe(Section):
    """Everything that a training run needs to know.

    ``members``: so many classifiers, of the seeds from ``seed`` · ``members`` on, become one whose
    scores are the mean of theirs. ``temperature``: what scores are divided by before they become
    probabilities, as held-out images ask for; fitted by the stages when omitted. ``refit``: once
    the test error is known, the classifier is trained again on test pictures too. ``start``: the
    folder or file of a classifier that keeps its structure and learns on. ``thresholds``: of the
    probabilities of several labels, in their order; 1/2 when omitted. The sections that configure
    other objects have their models from :func:`recipe_model`. ``search``: `visionshare
    train` chooses features, layers and augmentation instead.

    Examples
    --------
    >>> from visionshare.recipes import load_recipe
    >>> recipe = load_recipe("digits", ["seed=7"])
    >>> recipe.name, recipe.seed
    ('digits', 7)
    """

    name: str = Field(max_length=100)
    description: str = ""
    seed: int = Field(default=0, ge=0)
    members: int = Field(default=1, ge=1, le=100)
    temperature: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    thresholds: list[float] | None = None
    refit: bool = False
    start: str | None = Field(default=None, min_length=1)
    data: DataPart
    preprocessing: Any = None
    # Nothing where a search chooses them.
    features: FeaturePart = FeaturePart(pool="")
    store: StorePart = StorePart()
    learner: LearnerSection
    draws: DrawsPart | None = None
    deformations: Any = None
    fine_tuning: Any = None
    quantization: Any = None
    early_exit: Any = None
    teacher: TeacherPart | None = None
    unknown: UnknownPart | None = None
    search: SearchPart | None = None

    @field_validator("name")
    @classmethod
    def _name_is_a_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("letters, digits, '.', '_' and '-', the first a letter or digit")
        return name

    @model_validator(mode="after")
    def _search_chooses(self) -> Recipe:
        given = self.model_fields_set
        if self.search is None and "features" not in given:
            raise ValueError("features: [features] or [search] is needed")
        chosen = sorted(given & _SEARCHED) if self.search is not None else []
        if chosen:
            raise ValueError(f"search: not with {', '.join(chosen)}, which it chooses")
        return self

    @model_validator(mode="after")
    def _one_fit(self) -> Recipe:
        if self.preprocessing is not None and self.data.fit != "resize":
            raise ValueError(f"data.fit: got {self.data.fit!r}; say preprocessing.fit alone")
        return self

    @model_validator(mode="after")
    def _exits_are_validated(self) -> Recipe:
        if self.early_exit is None:
            return self
        if self.learner.kind != "shareboost":
            given = self.learner.kind
            raise ValueError(f'early_exit: needs learner.kind = "shareboost" (got {given!r})')
        if self.fine_tuning is not None:
            raise ValueError("early_exit: not with fine_tuning, whose classifier has no prefixes")
        if self.members > 1:
            raise ValueError("early_exit: not with members, whose mean has no prefixes")
        return self

    @model_validator(mode="after")
    def _tuning_fits(self) -> Recipe:
        if self.quantization is not None and self.fine_tuning is None:
            raise ValueError("quantization: needs [fine_tuning], which learns in few bits")
        if self.members > 1 and getattr(self.quantization, "max_flash", None) is not None:
            raise ValueError(
                "quantization.max_flash: not with members, which are learned one by one"
            )
        deformed = self.fine_tuning is not None and self.fine_tuning.deformed
        if deformed and self.deformations is None:
            raise ValueError("fine_tuning.deformed: needs [deformations], which says how much")
        return self

    @model_validator(mode="after")
    def _teacher_is_heard(self) -> Recipe:
        if self.teacher is None:
            return self
        searches = self.search is not None
        if self.teacher.recipe is not None and (searches or self.teacher.source != "self"):
            raise ValueError('teacher.recipe: needs teacher.source = "self", and no [search]')
        if searches:
            return self
        if self.fine_tuning is None:
            raise ValueError("teacher: needs [fine_tuning], whose loss it joins")
        if self.deformations is not None and self.deformations.copies > 0:
            raise ValueError(
                "teacher: not with deformations.copies above 0; fine_tuning.deformed = true "
                "makes copies"
            )
        return self

    @model_validator(mode="after")
    def _values_are_no_classes(self) -> Recipe:
        data = self.data
        if data.target is None and data.period is not None:
            raise ValueError("data.period: needs data.target, the column of values")
        if data.target is None and data.labels is None:
            return self
        if data.target is not None and data.labels is not None:
            raise ValueError("data.labels: not with data.target")
        given = "target" if data.labels is None else "labels"
        for name in ("teacher", "early_exit", "unknown"):
            if getattr(self, name) is not None:
                raise ValueError(f"{name}: not with data.{given}, which are no classes")
        return self

    @model_validator(mode="after")
    def _draws_have_a_search(self) -> Recipe:
        search = self.learner.search_name
        if self.draws is not None and search != "sampled":
            raise ValueError(f'draws: they need learner.search = "sampled" (got {search!r})')
        return self


@cache
def recipe_model(kind: str = DEFAULT_LEARNER) -> type[Recipe]:
    """Return the model of the recipes with one kind of learner."""
    learner = learner_section(kind)
    made: Any = _extended(Recipe, _sections())
    return create_model(
        "Recipe",
        __base__=made,
        data=(_extended(DataPart, _data_sections()), ...),
        learner=(learner, Field(default_factory=learner)),
    )


def _extended(base: type[Section], sections: Mapping[str, Any]) -> type[Section]:
    """Return a section with others in it, each of which is optional."""
    fields: dict[str, Any] = {name: (section | None, None) for name, section in sections.items()}
    return create_model(base.__name__, __base__=base, **fields)


def _data_sections() -> dict[str, Any]:
    from visionshare.datasets import Cut, Fonts

    return {"cut": section_of(Cut), "fonts": section_of(Fonts)}


@cache
def _sections() -> dict[str, Any]:
    """Return the sections that are made from the signatures of what they configure."""
    from visionshare.classifier import learn_exit_rule
    from visionshare.datasets import Augmentation, Preprocessing
    from visionshare.learners import FineTuning, Quantization

    return {
        "preprocessing": section_of(Preprocessing),
        "deformations": section_of(Augmentation, base=DeformationPart),
        "fine_tuning": section_of(FineTuning, base=TuningPart),
        "quantization": section_of(Quantization, base=QuantizationPart),
        "early_exit": section_of(learn_exit_rule, only=("tolerance", "stages"), base=EarlyExitPart),
    }


def as_settings(recipe: Recipe, exclude_defaults: bool = False) -> Mapping[str, Any]:
    """Return a recipe as plain nested values that JSON can hold."""
    values = recipe.model_dump(mode="json", exclude_defaults=exclude_defaults)
    return _finite(values)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    # JSON has no infinity.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
