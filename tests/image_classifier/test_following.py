"""What a user reads while a search runs."""

import re

import numpy as np
import pytest

from visionshare import ImageClassifier
from visionshare.datasets import ImageSet
from visionshare.errors import InputError
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.choice import choose
from visionshare.image_classifier.following import line_of_progress
from visionshare.image_classifier.proposals import Data
from visionshare.image_classifier.state import SearchSettings
from visionshare.image_classifier.trials import ProposalLearner
from visionshare.machine.progress import about

LINE = re.compile(
    r"trial (\d+) of about (\d+), best so far \d+\.\d % on held-out pictures, about (.+) left"
)


@pytest.fixture(scope="module")
def searched(bars):
    """Return the lines of a search of some stages, and what was chosen."""
    images, names = bars(40)
    labels = np.unique(names, return_inverse=True)[1]
    training = ImageSet(images, labels, ("lying", "standing"), "bars")
    lines = []
    settings = SearchSettings(tried=lambda state: lines.append(line_of_progress(state)), n_greedy=0)
    choice = choose(ProposalLearner(Data.of(training), training), Budget(3000), settings)
    return lines, choice


def test_each_trial_has_a_line_and_the_number_expected_is_about_right(searched):
    lines, choice = searched
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found)
    assert [int(match[1]) for match in found] == list(range(1, len(choice.trials) + 1))
    expected = [int(match[2]) for match in found]
    assert all(abs(n - len(lines)) <= 4 for n in expected)
    assert expected[-1] == len(lines)


def test_lines_go_to_standard_error_where_they_are_asked_for(pictures, capsys):
    model = ImageClassifier("pixels", budget=500, n_jobs=1)
    model.fit(*pictures)
    assert capsys.readouterr() == ("", "")
    model.set_params(verbose=1).fit(*pictures)
    said, lines = capsys.readouterr()
    assert said == ""
    assert LINE.fullmatch(lines.strip())
    model.set_params(verbose=2).fit(*pictures)
    _, of_trial = capsys.readouterr().err.splitlines()
    assert of_trial.endswith(model.search_results_["proposal"][0])
    for wrong in (3, -1, "yes", None):
        with pytest.raises(InputError, match="verbose: got"):
            model.set_params(verbose=wrong).fit(*pictures)


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "10 s"), (44, "40 s"), (89, "90 s"), (250, "4 min"), (9000, "2.5 h")]
)
def test_rough_times_are_said_as_people_say_them(seconds, said):
    assert about(seconds) == said
