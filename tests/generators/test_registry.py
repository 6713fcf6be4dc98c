"""Families by name: ours, those of other packages, and names of before."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.generators.examples import family_examples
from visionshare.errors import InputError
from visionshare.generators import FAMILIES, family_class
from visionshare.generators.base import FeatureFamily

PAGES = Path(__file__).parents[2] / "docs" / "families"
OTHER = """
from visionshare.generators.pixels.family import Pixels

class Dots(Pixels):
    name = "dots"
"""
# What a program sees beside an installed package with a family.
USE = """
import numpy as np
from visionshare.generators import family_class, family_from_state, family_names

assert "dots" in family_names() and "pixels" in family_names()
dots = family_class("dots")
fitted = dots().fit(np.eye(3))
assert type(family_from_state(*fitted.to_state())) is dots
assert family_class("pixels").__module__.startswith("visionshare."), "ours come first"
"""


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_of_ours_is_one_folder(name):
    made = family_class(name)
    assert issubclass(made, FeatureFamily)
    assert made.name == name
    module = import_module(made.__module__)
    assert module.__name__.startswith("visionshare.generators.")
    assert family_examples(name)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_of_ours_has_a_page_that_names_its_parameters(name):
    page = (PAGES / f"{name}.md").read_text()
    assert f"`{name}`" in page.splitlines()[0]
    for parameter in family_class(name)().get_params():
        assert f"| `{parameter}` |" in page


def test_a_family_of_another_package_is_found_by_its_entry_point(tmp_path):
    (tmp_path / "dotted.py").write_text(OTHER)
    about = tmp_path / "dotted-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: dotted\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[visionshare.families]\ndots = dotted:Dots\npixels = dotted:Dots\n"
    )
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{USE}"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize("name", ["", "pixel", "straightened", 3, None, ["pixels"]])
def test_other_names_are_refused(name):
    with pytest.raises(InputError, match=r"^family: got"):
        family_class(name)


def test_a_class_without_features_is_no_family():
    with pytest.raises(TypeError, match="needs transform"):
        type("Nothing", (FeatureFamily,), {"name": "nothing"})
