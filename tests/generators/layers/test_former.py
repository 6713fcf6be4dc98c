"""What former versions wrote becomes what this one writes, wherever it stands in a header."""

import numpy as np
import pytest

from visionshare import Deslant, Features, Network, Pixels
from visionshare.datasets import Preprocessing
from visionshare.errors import InputError
from visionshare.generators import family_from_state
from visionshare.generators.layers.former import current_header


def _family(state):
    header, arrays = current_header({"family": state}, {})
    assert not arrays
    return header["family"]


def test_names_of_families_and_of_their_parameters():
    former = {"family": "anchors", "parameters": {"centres": "kmeans", "n_radii": 2}}
    current = {"family": "anchors", "parameters": {"centers": "kmeans", "n_radii": 2}}
    assert _family(former) == current
    assert _family({"family": "union", "parts": [former]}) == {
        "family": "union",
        "parts": [current],
    }


def test_names_of_steps_of_preprocessing():
    former = {"polarity": "automatic", "fit": "box", "margin": 4, "centre": "mass"}
    header, _ = current_header({"family": {}, "preprocessing": former}, {})
    expected = Preprocessing("automatic", fit="box", margin=4, center="mass")
    assert Preprocessing.from_values(header["preprocessing"]) == expected
    header, _ = current_header({"family": {}, "preprocessing": {"fit": "centre"}}, {})
    assert header["preprocessing"] == {"fit": "center"}


def test_what_has_the_names_of_today_stays():
    preprocessing = Preprocessing("automatic", fit="center").to_values()
    header = {
        "family": {"family": "pixels", "parts": [], "other": [1, None, "centre"]},
        "preprocessing": preprocessing,
        "classes": ["centre"],
        "metadata": {"centre": "fit"},
    }
    arrays = {"weights": np.ones((2, 3))}
    assert current_header(header, arrays, "family.") == (header, arrays)


def test_a_family_inside_a_former_one_becomes_a_layer():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (3, 5, 4), np.uint8)
    state, own = Pixels().fit(images).to_state()
    former = {"family": "straightened", "image_shape": [5, 4], "parts": [state]}
    union = {"family": "union", "image_shape": [5, 4], "parts": [state, former]}
    weights = np.ones((2, 40))
    given = {"weights": weights, **{f"family.1.0.{name}": array for name, array in own.items()}}
    header, arrays = current_header({"family": union}, given, "family.")
    assert arrays["weights"] is weights
    _, part = header["family"]["parts"]
    assert part["family"] == "network"
    assert [layer["kind"] for layer in part["layers"]] == ["deslant", "family"]
    own = {n.removeprefix("family.1."): a for n, a in arrays.items() if n.startswith("family.1.")}
    layers = [Deslant(), Features(Pixels())]
    expected = Network(layers).fit(images)
    np.testing.assert_array_equal(
        family_from_state(part, own).transform(images), expected.transform(images)
    )


@pytest.mark.parametrize("parts", [None, 3, "pixels", [None], [[]]])
def test_parts_that_are_no_families_are_refused(parts):
    former = {"family": "deslanted", "image_shape": [5, 4], "parts": parts}
    with pytest.raises(InputError, match="parts"):
        current_header({"family": former}, {})


def test_families_in_each_other_without_end_are_refused():
    state = {"family": "pixels"}
    for _ in range(20):
        state = {"family": "deslanted", "image_shape": [5, 4], "parts": [state]}
    with pytest.raises(InputError, match="at most 8 levels"):
        current_header({"family": state}, {})
