"""Families have the parameters of scikit-learn's estimators, without importing it."""

from __future__ import annotations

import pickle

import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from visionshare import Features, PatchTemplates, Pixels
from visionshare.generators.parameters import unfitted_copy
from visionshare.generators.union import UnionOfFamilies


def test_deep_parameters_are_those_of_inner_families() -> None:
    family = Features(PatchTemplates(n_templates=5))
    assert family.get_params()["family__n_templates"] == 5
    assert list(family.get_params(deep=False)) == ["family"]
    assert family.set_params(family__n_templates=6).family.n_templates == 6


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="Invalid parameter 'templates'"):
        PatchTemplates().set_params(templates=3)


def test_only_what_was_changed_is_shown() -> None:
    family = Features(PatchTemplates(n_templates=5, widths=(2.0,)))
    shown = "Features(family=PatchTemplates(n_templates=5, widths=(2.0,)))"
    assert repr(family) == shown
    assert "PatchTemplates" in family._repr_html_()


def test_copies_are_those_of_scikit_learn() -> None:
    union = UnionOfFamilies((PatchTemplates(grid=3), Features(Pixels())))
    for copied in (unfitted_copy(union), clone(union), pickle.loads(pickle.dumps(union))):
        assert repr(copied) == repr(union)
        assert copied.families[0] is not union.families[0]


def test_a_family_is_a_step_of_a_pipeline() -> None:
    pipeline = make_pipeline(PatchTemplates(n_templates=4), Pixels())
    assert clone(pipeline).get_params()["patchtemplates__n_templates"] == 4
    assert get_tags(pipeline[0]).target_tags.required is False
