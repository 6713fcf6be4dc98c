"""Classifier files of every released format version are read and answer as they did."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

import visionshare
from visionshare.classifier.file_format import FORMAT_VERSION

HERE = Path(__file__).parent
SAMPLES = sorted(HERE.glob("*.safetensors"))


def test_the_current_version_has_a_sample():
    assert HERE / f"digits-v{FORMAT_VERSION}.safetensors" in SAMPLES


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_a_sample_answers_as_it_did(path):
    images = (load_digits().images[1000:1020] * 15).astype(np.uint8)
    model = visionshare.load(path)
    answers = json.loads(path.with_suffix(".json").read_text())
    assert_allclose(model.decision_function(images), answers["scores"], atol=2e-4)
    assert model.at(5).predict(images).tolist() == answers["prefix"]
    assert model.macs == answers["macs"]
