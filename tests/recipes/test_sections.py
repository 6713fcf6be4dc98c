"""Sections made from signatures: types, defaults and bounds are those of what they configure."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from pydantic import ValidationError

from visionshare.errors import InputError
from visionshare.learners.registry import CLASSIFIERS, classifier_class
from visionshare.recipes.registry import learner_section
from visionshare.recipes.sections import RUNTIME, section_of


class Criterion:
    """What a parameter may be beside a name."""


@dataclass(frozen=True)
class Settings:
    """Parameters of many types."""

    required: int
    criterion: str | Criterion = "gradient"
    bound: float | None = 1.0
    factor: float = math.inf
    points: tuple[float, float] = (1.0, 2.0)
    folders: tuple[str, ...] = ()
    options: dict[str, Any] | None = None
    weights: dict[int, float] | str | None = None
    mode: Literal["a", "b"] = "a"
    array: np.ndarray | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.required < 1:
            raise InputError("required", self.required, "at least 1")
        if self.bound is None and self.mode == "b":
            raise InputError("no_key", None, "a bound")


def test_what_toml_cannot_say_is_left_out():
    section = section_of(Settings)
    assert list(section.model_fields) == [
        name for name in Settings.__dataclass_fields__ if name not in ("array", "random_state")
    ]
    with pytest.raises(ValidationError, match="criterion"):
        section(required=1, criterion=Criterion())
    with pytest.raises(ValidationError, match="weights"):
        section(required=1, weights={1: 0.5})
    with pytest.raises(ValidationError, match="mode"):
        section(required=1, mode="c")


def test_lists_whole_numbers_and_infinity_stand_for_what_python_has():
    made = section_of(Settings)(
        required=2, bound=math.inf, factor=3, points=[1, 2], folders=["x"]
    ).build(random_state=7, n_jobs=3)
    assert made == Settings(
        2, bound=None, factor=3.0, points=(1, 2), folders=("x",), random_state=7
    )
    with pytest.raises(ValidationError, match="points"):
        section_of(Settings)(required=2, points=[1, 2, 3])
    with pytest.raises(ValidationError, match="required"):
        section_of(Settings)(required=2.5)
    # A float that may not be None keeps its infinity.
    assert section_of(Settings)(required=2).build().factor == math.inf


def test_the_object_checks_the_bounds():
    section = section_of(Settings)
    with pytest.raises(ValidationError, match="got 0; accepted: at least 1"):
        section(required=0)
    with pytest.raises(ValidationError, match="no_key: got None; accepted: a bound"):
        section(required=1, bound=math.inf, mode="b")
    with pytest.raises(ValidationError):
        section()


def test_names_that_only_type_checkers_know():
    def configured(a: str | Unknown, b: Unknown = None, c: int = 3) -> None:  # noqa: F821
        """Have annotations that cannot be evaluated."""

    section = section_of(configured)
    assert list(section.model_fields) == ["a", "c"]
    assert section(a="x").as_arguments() == {"a": "x", "c": 3}
    assert list(section_of(configured, only=("c",)).model_fields) == ["c"]


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_every_learner_has_a_section_of_its_defaults(kind):
    section, learner = learner_section(kind), classifier_class(kind)()
    built = section().build(n_jobs=2, random_state=3, checkpoint="x", progress=False)
    built.check_parameters()
    for name in section.section_keys:
        if name != "learner":
            assert getattr(built, name) == getattr(learner, name)
    parameters = inspect.signature(type(learner)).parameters
    assert not RUNTIME & set(section.section_keys)
    for name, value in (("n_jobs", 2), ("random_state", 3), ("checkpoint", "x")):
        assert name not in parameters or getattr(built, name) == value
    with pytest.raises(ValidationError, match="no_such_key"):
        section(no_such_key=3)


def test_a_template_gets_workers_and_seed_but_no_checkpoint():
    section = learner_section("one_against_rest")(rounds=3, learner={"alpha": 0.5})
    built = section.build(n_jobs=2, random_state=3, checkpoint="x")
    assert (built.learner.alpha, built.learner.n_jobs, built.learner.random_state) == (0.5, 2, 3)
    assert built.learner.checkpoint is None
    assert learner_section("one_against_rest")(learner="grfl").build().learner == "grfl"
    with pytest.raises(ValidationError, match="'JointBoost'"):
        learner_section("one_against_rest")(learner="jointboost")
