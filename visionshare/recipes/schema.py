"""What a recipe may say, checked before any work is done."""

from __future__ import annotations

import difflib
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from visionshare.bundled import bundled
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.errors import RecipeError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Recipe", "list_pipelines", "load_recipe", "parse_setting", "read_pool"]


_DEEPEST_POOL = 4


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
    """Which images: a name of the catalogue, a file or a folder."""

    source: str
    cut: CutPart | None = None
    fonts: FontsPart | None = None
    height: int | None = Field(default=None, ge=1, le=4096)
    width: int | None = Field(default=None, ge=1, le=4096)
    mode: Literal["grey", "color"] = "grey"
    fit: Literal["resize", "centre"] = "resize"
    classes: list[str] | None = Field(default=None, min_length=2)
    per_class: int | None = Field(default=None, ge=1)
    limit: int | None = Field(default=None, ge=1)


class PreprocessingPart(_Strict):
    """How pictures are prepared, see :class:`visionshare.datasets.Preprocessing`."""

    polarity: str = "as_is"
    contrast: bool = False
    crop: bool = False
    threshold: float = 0.3
    fit: str = "resize"
    margin: int = 0
    centre: str = "box"

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
    strength: float = Field(default=1e-3, ge=0)

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
    extra_rounds: int = Field(default=0, ge=0)
    criterion: str = "gradient"
    criterion_options: dict[str, Any] | None = None
    search: str = "exhaustive"
    search_options: dict[str, Any] | None = None
    margin: float = 1.0
    penalty: str = "ridge"
    strength: float = 1e-4
    sharpness: float = 100.0
    scaling: str = "unit_variance"
    tol: float = 0.0
    refit_tol: float = 1e-6
    max_iter: int = 300
    validation_fraction: float = 0.0
    patience: int | None = None


class GroupFeaturePart(_Strict):
    """Settings of the learner, see :class:`visionshare.learners.GroupFeatureClassifier`.

    TOML has no None: where the learner takes None for a strength, ``inf`` stands here.
    """

    kind: Literal["grfl"]
    rounds: int = Field(default=200, ge=1)
    max_features: int | None = Field(default=None, ge=1)
    entering: int = Field(default=1, ge=1)
    loss: str = "squared_hinge"
    q: float = 2.0
    strength: float = 1.0
    shared_strength: float = math.inf
    search: str = "exhaustive"
    search_options: dict[str, Any] | None = None
    patience: int = Field(default=1, ge=1)
    master: str = "newton"
    scaling: str = "unit_norm"
    tol: float = 1e-3
    refit_tol: float = 1e-4
    max_iter: int = Field(default=3000, ge=1)


class GreedyTLPart(_Strict):
    """Settings of the learner, see :class:`visionshare.learners.GreedyTL`."""

    kind: Literal["greedytl"]
    rounds: int = Field(default=100, ge=1)
    strength: float = 1.0
    tol: float = 1e-4
    search: str = "exhaustive"
    search_options: dict[str, Any] | None = None
    class_weight: Literal["balanced"] | None = None
    fit_intercept: bool = True


_FIRST_KIND = "shareboost"
_LEARNERS: dict[str, type[_Strict]] = {
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
    """Deformed copies of the training images."""

    copies: int = Field(ge=1)
    alpha: float = 1.0
    sigma: float = 4.0
    rotation: float = 10.0
    scale: float = 0.1
    shear: float = 0.1


class EarlyExitPart(_Strict):
    """Where images may stop early, see :func:`visionshare.classifier.learn_exit_rule`."""

    tolerance: float = Field(default=5e-4, ge=0, lt=1)
    stages: int = Field(default=6, ge=1)
    fraction: float = Field(default=0.1, gt=0, lt=1)


class Recipe(_Strict):
    """Everything that a training run needs to know."""

    name: str
    description: str = ""
    seed: int = Field(default=0, ge=0)
    data: DataPart
    preprocessing: PreprocessingPart | None = None
    features: FeaturePart
    sources: SourcesPart | None = None
    store: StorePart = StorePart()
    learner: LearnerPart = ShareBoostPart()
    draws: DrawsPart | None = None
    deformations: DeformationPart | None = None
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
    def _draws_are_wanted(self) -> Recipe:
        if self.draws is not None and self.learner.search != "sampled":
            given = self.learner.search
            raise ValueError(f'draws: they need learner.search = "sampled" (got {given!r})')
        return self


def list_pipelines() -> list[str]:
    """Return the names of the bundled recipes."""
    return sorted(bundled("pipelines"))


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise RecipeError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: not sound TOML ({error})") from None


def parse_setting(text: str) -> tuple[list[str], Any]:
    """Return keys and value of ``part.key=value``; the value is read as TOML, else as text.

    Examples
    --------
    >>> parse_setting("learner.rounds=20")
    (['learner', 'rounds'], 20)
    >>> parse_setting("store.dtype=float32")
    (['store', 'dtype'], 'float32')
    """
    key, equals, value = text.partition("=")
    if not equals or not all(key.split(".")):
        raise RecipeError(f"--set {text!r}: a setting such as learner.rounds=20 is wanted")
    try:
        return key.split("."), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.split("."), value


def load_recipe(name_or_path: str | os.PathLike[str], settings: Sequence[str] = ()) -> Recipe:
    """Return a bundled recipe or one of a TOML file, with settings changed.

    Parameters
    ----------
    name_or_path : str or path-like
        A name of :func:`list_pipelines`, or a file.
    settings : sequence of str
        Changes such as ``"learner.rounds=20"``.

    Raises
    ------
    RecipeError
        If there is no such recipe, or a key or a value of it is not accepted.
    """
    known = bundled("pipelines")
    path = known.get(str(name_or_path), Path(name_or_path))
    if not path.is_file():
        hint = _hint(str(name_or_path), known)
        names = ", ".join(sorted(known))
        raise RecipeError(
            f"no pipeline {str(name_or_path)!r}{hint} Known: {names}; or a .toml file"
        )
    values = _read_toml(path)
    for text in settings:
        keys, value = parse_setting(text)
        table: Any = values
        for key in keys[:-1]:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise RecipeError(f"--set {text!r}: {key!r} is no table")
        table[keys[-1]] = value
    try:
        return Recipe(**_tuples(values))
    except ValidationError as error:
        raise RecipeError(f"{path}: {_first_problem(error, Recipe)}") from None


def _tuples(values: Any) -> Any:
    return {str(k): v for k, v in values.items()} if isinstance(values, dict) else values


def _hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else "."


def _first_problem(error: ValidationError, model: Any) -> str:
    problems = error.errors()
    # A misspelt key is also a missing one: its right name says more.
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    keys, part = _place(problem["loc"], model)
    where = ".".join(keys)
    if problem["type"] == "union_tag_invalid":
        given = str(problem["ctx"]["tag"])
        known = ", ".join(_LEARNERS)
        return f"{where}.kind: no learner {given!r}{_hint(given, _LEARNERS)} Known: {known}"
    if not keys:
        return problem["msg"].removeprefix("Value error, ")
    if problem["type"] != "extra_forbidden":
        return f"{where}: {problem['msg']} (got {problem['input']!r})"
    names = list(part.model_fields)
    return f"unknown key {where!r}{_hint(keys[-1], names)} Known: {', '.join(names)}"


def _place(loc: tuple[Any, ...], model: Any) -> tuple[list[str], Any]:
    """Return a problem's keys as they stand in the file, and the model of the last one's table."""
    keys: list[str] = []
    part, table = model, model
    for key in loc:
        if part is LearnerPart:
            # Not a key: pydantic says which kind of learner it took the table for.
            part = _LEARNERS[key]
            continue
        keys.append(str(key))
        # The number of an entry stands between a list and the keys of its entries.
        if isinstance(key, str):
            table = part
            fields = getattr(part, "model_fields", {})
            part = _model_of(fields[key]) if key in fields else None
    return keys, table


def _model_of(field: Any) -> Any:
    from typing import get_args

    if field.metadata:
        return LearnerPart if any(isinstance(m, Discriminator) for m in field.metadata) else None
    annotation = field.annotation
    return next((a for a in get_args(annotation) if a is not type(None)), annotation)


def read_pool(part: FeaturePart, seed: int) -> Any:
    """Return the unfitted feature family of a recipe.

    The parameters of a pool of several parts are tables by the names of the parts.

    Raises
    ------
    RecipeError
        If the pool is unknown, or a key or a parameter of it.
    """
    return _family(part.pool, Path(), part.parameters, seed, _DEEPEST_POOL)


def _family(pool: str, folder: Path, changes: Mapping[str, Any], seed: int, levels: int) -> Any:
    from visionshare.generators import FAMILIES, family_class

    known = bundled("features")
    path = known.get(pool, folder / pool)
    if not path.is_file():
        hint = _hint(pool, known)
        raise RecipeError(f"no pool of features {pool!r}{hint} Known: {', '.join(known)}")
    try:
        file = PoolFile(**_read_toml(path))
    except ValidationError as error:
        raise RecipeError(f"{path}: {_first_problem(error, PoolFile)}") from None
    if file.family not in FAMILIES:
        hint = _hint(file.family, FAMILIES)
        raise RecipeError(f"{path}: no family {file.family!r}{hint} Known: {', '.join(FAMILIES)}")
    if (file.family == "union") != bool(file.parts):
        raise RecipeError(f"{path}: parts: a union has [[parts]], and nothing else has")
    family, parameters = family_class(file.family), {**file.parameters, **changes}
    if file.parts:
        return family(_parts(path, file.parts, parameters, seed, levels))
    names = list(family().get_params())
    for key in parameters:
        if key not in names:
            hint = _hint(key, names)
            raise RecipeError(f"{path}: unknown parameter {key!r}{hint} Known: {', '.join(names)}")
    if "random_state" in names:
        parameters.setdefault("random_state", seed)
    return family(**parameters)


def _parts(
    path: Path, parts: Sequence[PoolPart], changes: Mapping[str, Any], seed: int, levels: int
) -> list[Any]:
    """Return the families of a pool's parts."""
    if levels == 0:
        raise RecipeError(f"{path}: parts: at most {_DEEPEST_POOL} pools inside each other")
    names = [part.name or part.pool for part in parts]
    for name, change in changes.items():
        if name not in names:
            hint = _hint(name, names)
            raise RecipeError(f"{path}: unknown part {name!r}{hint} Known: {', '.join(names)}")
        if names.count(name) > 1:
            raise RecipeError(f"{path}: parts: several have the name {name!r}; give each its own")
        if not isinstance(change, dict):
            raise RecipeError(f"{path}: {name}: a table of parameters is wanted (got {change!r})")
    families = []
    for name, part in zip(names, parts, strict=True):
        parameters = {**part.parameters, **changes.get(name, {})}
        try:
            families.append(_family(part.pool, path.parent, parameters, seed, levels - 1))
        except RecipeError as error:
            raise RecipeError(f"{path}: part {name!r}: {error}") from None
    return families


def as_settings(recipe: Recipe) -> Mapping[str, Any]:
    """Return a recipe as plain nested values that JSON can hold."""
    return _finite(recipe.model_dump(mode="json"))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(held) for key, held in value.items()}
    # JSON has no infinity.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
