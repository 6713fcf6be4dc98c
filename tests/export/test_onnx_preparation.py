"""Preparation inside an ONNX model: the same bytes as Python's, from pictures of any size."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.export.test_preparation import ALL, STEPS
from visionshare import CompactClassifier, Pixels
from visionshare.cli.main import main
from visionshare.datasets import Preprocessing
from visionshare.errors import ExportError, InputError
from visionshare.export import onnx_program, run_onnx
from visionshare.export.preparation import check_onnx_preparation, frame_of_noise

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def model_of(options, shape=(13, 11)):
    """Return a classifier that sees all pixels."""
    family = Pixels().fit(np.zeros((1, *shape)))
    weights = np.random.default_rng(3).normal(size=(3, family.n_features_)).astype(np.float32)
    steps = Preprocessing(**options, arithmetic="whole")
    return CompactClassifier(family, weights, np.zeros(3), np.arange(3), preprocessing=steps)


def pictures_of(shape, n, largest=24):
    """Return noisy pictures of many sizes; every seventh has a single color."""
    rng, pictures = np.random.default_rng(1), []
    for number in range(n):
        height, width = (int(s) for s in rng.integers(1, 150 if number % 10 == 0 else largest, 2))
        planes = [frame_of_noise("gray", height, width, rng) for _ in range(3)]
        picture = planes[0] if shape[2:] in ((), (1,)) else np.stack(planes, axis=2)
        if number % 7 == 0:
            picture[:] = rng.integers(0, 256)
        pictures.append(picture)
    return pictures


@pytest.mark.parametrize("shape", [(13, 11), (13, 11, 3)], ids=str)
@pytest.mark.parametrize("name", STEPS)
def test_every_step_gives_the_same_bytes(name, shape):
    model = model_of(STEPS[name], shape)
    pictures = pictures_of(shape, 60)
    found = run_onnx(onnx_program(model, preparation=True), pictures)
    expected = [model.preprocessing.apply(picture, (13, 11)) for picture in pictures]
    assert_array_equal(found.images, expected)
    assert found.labels.tolist() == model.predict(np.stack(expected)).tolist()


@pytest.mark.parametrize("shape", [(13, 11), (13, 11, 3)], ids=str)
def test_no_pictures(shape):
    program = onnx_program(model_of({}, shape), preparation=True)
    found, one = (run_onnx(program, pictures_of(shape, n)) for n in (0, 1))
    assert [part.shape for part in found] == [(0,), (0, 3), (0, 3), (0, *shape)]
    assert [part.dtype for part in found] == [part.dtype for part in one]


@pytest.mark.parametrize("shape", [(1, 1), (28, 28), (5, 40, 1), (60, 90)], ids=str)
def test_rasters_of_any_size(shape):
    for name in ("stretched", "mass"):
        model = model_of(STEPS[name], shape)
        assert check_onnx_preparation(model, onnx_program(model, preparation=True)) == 40


def test_a_large_picture_does_not_overflow():
    picture = np.full((1500, 1300), 255, np.uint8)
    picture[0, :900] = 3
    model = model_of(STEPS["mass"], (3, 2))
    found = run_onnx(onnx_program(model, preparation=True), [picture])
    assert_array_equal(found.images[0], model.preprocessing.apply(picture, (3, 2)))


@pytest.mark.parametrize("name", ["stretched", "dark", "mass", "all"])
def test_nothing_is_computed_for_nothing(name):
    program = onnx_program(model_of(STEPS[name], (13, 11, 3)), preparation=True)
    proto = onnx.load_from_string(program.content)
    onnx.checker.check_model(proto, full_check=True)
    used = {name for node in proto.graph.node for name in node.input}
    outputs = {output.name for output in proto.graph.output}
    assert {name for node in proto.graph.node for name in node.output} <= used | outputs
    assert {constant.name for constant in proto.graph.initializer} <= used
    assert [value.name for value in proto.graph.input] == ["picture"]
    assert outputs == {"label", "probabilities", "scores", "image"}
    assert "any size" in {p.key: p.value for p in proto.metadata_props}["preprocessing"]


def test_what_cannot_be_in_a_model_is_named():
    model = model_of({"polarity": "automatic", **ALL})

    def refused(match, model=model, pixel=None, **changes):
        with pytest.raises(InputError, match=match):
            onnx_program(replace(model, **changes), pixel=pixel, preparation=True)

    refused("preprocessing.arithmetic", preprocessing=Preprocessing("automatic"))
    refused("preprocessing.arithmetic", preprocessing=Preprocessing("automatic", fit="character"))
    refused("pixel", pixel="float32")
    refused("pictures", model_of({}, (143,)))


def test_what_differs_is_told():
    model = model_of({"polarity": "automatic", **ALL})
    other = replace(model, preprocessing=Preprocessing(**STEPS["dark"], arithmetic="whole"))
    with pytest.raises(ExportError, match="otherwise"):
        check_onnx_preparation(other, onnx_program(model, preparation=True))
    with pytest.raises(ExportError, match="otherwise"):
        check_onnx_preparation(model, replace(onnx_program(other, preparation=True)))


def test_the_command_writes_and_checks_it(tmp_path, capsys):
    model = model_of({"polarity": "automatic", **ALL})
    model.save(tmp_path / "whole.safetensors")
    arguments = ["export", str(tmp_path / "whole.safetensors"), "--to", "onnx", "--preparation"]
    assert main([*arguments, "--out", str(tmp_path / "m.onnx"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pictures_prepared_as_in_python"] == 40
    assert main([*arguments, "--out", str(tmp_path / "m.onnx")]) == 0
    assert "prepared   40 pictures" in capsys.readouterr().out
    replace(model, preprocessing=Preprocessing()).save(tmp_path / "floats.safetensors")
    arguments[1] = str(tmp_path / "floats.safetensors")
    assert main([*arguments, "--out", str(tmp_path / "n.onnx")]) == 2
    assert "preprocessing.arithmetic" in capsys.readouterr().err
    assert not (tmp_path / "n.onnx").exists()
