"""Names of former versions become those of today, wherever they stand in a header."""

from visionshare.datasets import Preprocessing
from visionshare.generators.former import current_names


def test_names_of_families_and_of_their_parameters():
    former = {
        "family": "union",
        "parts": [
            {"family": "straightened", "parts": [{"family": "pixels"}]},
            {"family": "anchors", "parameters": {"centres": "kmeans", "n_radii": 2}},
        ],
    }
    assert current_names(former) == {
        "family": "union",
        "parts": [
            {"family": "deslanted", "parts": [{"family": "pixels"}]},
            {"family": "anchors", "parameters": {"centers": "kmeans", "n_radii": 2}},
        ],
    }


def test_names_of_steps_of_preprocessing():
    former = {"polarity": "automatic", "fit": "box", "margin": 4, "centre": "mass"}
    expected = Preprocessing("automatic", fit="box", margin=4, center="mass")
    assert Preprocessing.from_values(current_names(former)) == expected
    assert Preprocessing.from_values(current_names({"fit": "centre"})).fit == "center"


def test_what_has_the_names_of_today_stays():
    values = {**Preprocessing("automatic", fit="center").to_values(), "other": [1, None, "centre"]}
    assert current_names(values) == values
