"""The Open Inference Protocol beside the simple one."""

import json

import numpy as np
import pytest

from tests.service.clients import ask, get
from visionshare import CompactClassifier, Pixels
from visionshare.datasets import load_dataset
from visionshare.service import service


@pytest.fixture(scope="module")
def app(model):
    return service(model, name="digits")


def infer(content, kind="application/json", name="digits"):
    body = content if isinstance(content, bytes) else json.dumps(content)
    return {
        "method": "POST", "url": f"/v2/models/{name}/infer", "content": body,
        "headers": {"Content-Type": kind},
    }  # fmt: skip


def tensor(images, **changes):
    values = {
        "name": "images", "shape": list(images.shape), "datatype": "UINT8",
        "data": images.ravel().tolist(),
    }  # fmt: skip
    return {"inputs": [values | changes]}


def test_the_model_and_its_health_are_described(app, model):
    paths = ["/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/digits"]
    paths += ["/v2/models/digits/ready", "/v2/models/other"]
    server, live, ready, about, model_ready, other = ask(app, *map(get, paths))
    assert server.json()["name"] == "visionshare"
    assert (live.json(), ready.json()) == ({"live": True}, {"ready": True})
    assert model_ready.json() == {"name": "digits", "ready": True}
    assert about.json()["inputs"] == [
        {"name": "images", "datatype": "UINT8", "shape": [-1, *model.image_shape]}
    ]
    assert about.json()["outputs"][1]["shape"] == [-1, 10]
    assert (other.status_code, type(other.json()["error"])) == (404, str)


def test_a_batch_gets_what_the_classifier_says(app, model):
    images = load_dataset("digits", "test").images[:7]
    nested = tensor(images, data=images.tolist()) | {"id": "7"}
    chosen = tensor(images) | {"outputs": [{"name": "label"}]}
    for answer in ask(app, infer(tensor(images)), infer(nested)):
        labels, probabilities = answer.json()["outputs"]
        assert labels["data"] == model.predict(images).astype(str).tolist()
        assert (labels["shape"], probabilities["shape"]) == ([7], [7, 10])
        found = np.reshape(probabilities["data"], (7, 10))
        np.testing.assert_allclose(found, model.predict_proba(images), atol=1e-6)
    assert answer.json()["id"] == "7"
    only = ask(app, infer(chosen))[0].json()["outputs"]
    assert [output["name"] for output in only] == ["label"]


def test_vectors_are_floats():
    family = Pixels().fit(np.zeros((1, 3))).take([0, 2])
    model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    vectors = np.array([[0.5, 9, -2], [0, 0, 3]])
    answer = ask(service(model), infer(tensor(vectors, datatype="FP32"), name="classifier"))[0]
    assert answer.json()["outputs"][0]["data"] == ["a", "b"]


IMAGES = np.zeros((2, 8, 8), np.uint8)
REFUSED = {
    "no JSON": b"{", "a list": [], "no input": {"inputs": []}, "a deep list": b"[" * 60_000,
    "another shape": tensor(IMAGES, shape=[2, 64]), "fewer": tensor(IMAGES, data=[0] * 127),
    "none": tensor(IMAGES[:0]), "negative": tensor(IMAGES, shape=[-2, 8, 8]),
    "a type": tensor(IMAGES, datatype="FP32"), "large values": tensor(IMAGES, data=[256] * 128),
    "booleans": tensor(IMAGES, data=[True] * 128), "ragged": tensor(IMAGES, data=[[1], 2]),
    "an output": tensor(IMAGES) | {"outputs": [{"name": "x"}]},
    "outputs": tensor(IMAGES) | {"outputs": 5}, "a lot": tensor(IMAGES, shape=[1 << 40, 8, 8]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_sentences(app, name):
    answer = ask(app, infer(REFUSED[name]))[0]
    assert answer.status_code == 422
    assert isinstance(answer.json()["error"], str)
    assert ask(app, infer(b"x", "text/plain"))[0].status_code == 415
