"""What the service answers, and what it refuses."""

import asyncio
import contextlib
import io
import json
import threading
from dataclasses import replace

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.service.clients import ask, get
from visionshare import CompactClassifier, Pixels
from visionshare.batch import explain_picture
from visionshare.batch.pictures import read_picture
from visionshare.classifier import EarlyExit, ExitRule, learn_unknown_rule
from visionshare.datasets import load_dataset
from visionshare.errors import InputError, ServiceError
from visionshare.service import Limits, answers, service
from visionshare.service.bodies import Refusal, pixels_of


def png(image):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "png")
    return file.getvalue()


def predict(content=b"", kind="image/png", url="/predict", **others):
    headers = {} if kind is None else {"Content-Type": kind}
    return {
        "method": "POST", "url": url, "content": content,
        "headers": headers | others.pop("headers", {}), **others,
    }  # fmt: skip


@pytest.fixture(scope="module")
def app(model):
    return service(model, Limits(max_body_size=20_000, max_pixels=10_000))


def test_a_picture_of_no_class_is_refused(model):
    digits = load_dataset("digits", "test").images
    rule = learn_unknown_rule(model, load_dataset("digits", "train").images[:400], digits[:200])
    refusing = replace(model, unknown=rule)
    pictures = [digits[0], np.full((8, 8), 90, np.uint8)]
    bodies = [json.dumps({"pixels": picture.tolist()}) for picture in pictures]
    known, blank = ask(service(refusing), *(predict(b, "application/json") for b in bodies))
    assert known.json()["label"] == model.predict(digits[:1])[0]
    assert known.json()["known"] > 0.01
    assert blank.json()["label"] == "unknown"
    assert blank.json()["probability"] == blank.json()["known"] < 0.01


def test_a_picture_gets_what_the_classifier_says(app, model, tmp_path):
    # On a canvas of its own, dark on light: preprocessed as every other command does.
    canvas = np.full((60, 90), 200, np.uint8)
    canvas[10:42, 30:62] = 200 - 0.6 * np.kron(
        load_dataset("digits", "test").images[3], np.ones((4, 4), np.uint8)
    )
    (tmp_path / "a.png").write_bytes(png(canvas))
    image = read_picture(model, tmp_path / "a.png")
    expected = model.predict_proba(image)[0]
    raw, form, asked = ask(
        app, predict(png(canvas)),
        {"method": "POST", "url": "/predict", "files": {"file": ("a.png", png(canvas))}},
        predict(png(canvas), params={"raster": True}),
    )  # fmt: skip
    for answer in (raw, form, asked):
        assert answer.status_code == 200
        said = answer.json()
        assert said["label"] == str(model.predict(image)[0])
        assert list(said["probabilities"]) == list("0123456789")
        np.testing.assert_allclose(list(said["probabilities"].values()), expected, atol=1e-6)
        assert said["macs"] == model.macs
    assert raw.json()["raster"] is None
    assert asked.json()["raster"] == image.tolist()


def test_a_picture_is_explained_where_it_is(app, model):
    canvas = np.full((60, 90), 200, np.uint8)
    canvas[10:42, 30:62] = 200 - 0.6 * np.kron(
        load_dataset("digits", "test").images[3], np.ones((4, 4), np.uint8)
    )
    said = explain_picture(model, io.BytesIO(png(canvas))).explanation
    raw, form, other, pixels = ask(
        app, predict(png(canvas), url="/explain"),
        {"method": "POST", "url": "/explain", "files": {"file": ("a.png", png(canvas))}},
        predict(png(canvas), url="/explain?class=7&top=60"),
        predict(json.dumps({"pixels": [[9] * 8] * 8}), "application/json", url="/explain"),
    )  # fmt: skip
    assert raw.json() == form.json()
    record = raw.json()
    assert (record["label"], record["size"]) == (str(said.label), [60, 90])
    assert len(record["features"]) == 10
    strongest = said.top_features(said.class_index(), 10)
    np.testing.assert_allclose(
        [f["box"] for f in record["features"]], said.boxes[strongest], 0, 0.01
    )
    full = other.json()
    assert full["explained"] == "7"
    for name in ("7", full["rival"]):
        added = sum(f["evidence"][name] for f in full["features"])
        added += full["others"][name] + full["base"][name]
        assert added == pytest.approx(full["score"][name], abs=1e-3)
    assert pixels.json()["size"] == [8, 8]


def test_wrong_wishes_for_explanations_are_refused(app):
    picture = png(np.zeros((9, 9), np.uint8))
    answers = ask(
        app, *(predict(picture, url=f"/explain?{q}") for q in ("class=eleven", "top=0", "top=101")),
        predict(b"nothing", url="/explain"),
    )  # fmt: skip
    assert [a.status_code for a in answers] == [422] * 4
    kinds = [a.json()["error"]["kind"] for a in answers]
    assert kinds == ["invalid_request"] * 3 + ["invalid_picture"]
    assert "'eleven'" in answers[0].json()["error"]["message"]


def test_pixels_skip_preprocessing(app, model):
    image = load_dataset("digits", "test").images[7]
    said = ask(app, predict(json.dumps({"pixels": image.tolist()}), "application/json"))[0].json()
    assert said["label"] == str(model.predict(image)[0])
    assert said["probability"] == pytest.approx(model.predict_proba(image).max(), abs=1e-6)


def test_an_exit_rule_is_followed(model):
    rule = ExitRule((10, 30), (0.8, 0.8))
    early = EarlyExit(model, rule)
    images = load_dataset("digits", "test").images[:20]
    app = service(replace(model, exit_rule=rule))
    bodies = [json.dumps({"pixels": image.tolist()}) for image in images]
    said = [a.json() for a in ask(app, *(predict(b, "application/json") for b in bodies))]
    stops = early.stops(images)
    assert len(set(stops.tolist())) > 1
    assert [answer["stage"] for answer in said] == (stops + 1).tolist()
    assert [answer["macs"] for answer in said] == early.costs[stops].tolist()
    assert [answer["label"] for answer in said] == early.predict(images).astype(str).tolist()


def test_vectors_come_as_json():
    family = Pixels().fit(np.zeros((1, 3))).take([0, 2])
    model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    vector, picture, wrong = ask(
        service(model), predict('{"pixels": [0.5, 9, -2]}', "application/json"),
        predict(png(np.zeros((2, 2), np.uint8))),
        predict('{"pixels": [1, NaN, 2]}', "application/json"),
    )  # fmt: skip
    assert (vector.status_code, vector.json()["label"]) == (200, "a")
    assert (picture.status_code, wrong.status_code) == (415, 422)


LARGE = png(np.zeros((101, 100), np.uint8))
BOMB = LARGE[:16] + (60_000).to_bytes(4, "big") * 2 + LARGE[24:]
REFUSED = {
    "no type": (predict(b"x", None), 415, "unsupported_type"),
    "another type": (predict(b"x", "text/plain"), 415, "unsupported_type"),
    "empty": (predict(b""), 422, "empty_body"),
    "no picture": (predict(b"no picture"), 422, "invalid_picture"),
    "cut": (predict(png(np.zeros((9, 9), np.uint8))[:-30]), 422, "invalid_picture"),
    "too many pixels": (predict(LARGE), 422, "invalid_picture"),
    "a bomb": (predict(BOMB), 422, "invalid_picture"),
    "too long": (predict(bytes(20_001)), 413, "body_too_large"),
    "a form without a file": (
        {"method": "POST", "url": "/predict", "files": {"file": (None, "text")}},
        422, "empty_body"),
    "a form that is none": (predict(b"x", "multipart/form-data"), 422, "invalid_form"),
    "two files": (
        {"method": "POST", "url": "/predict", "files": [("a", ("a", b"1")), ("b", ("b", b"2"))]},
        422, "invalid_form"),
    "not JSON": (predict(b"{", "application/json"), 422, "invalid_pixels"),
    "deep JSON": (predict(b"[" * 19_000, "application/json"), 422, "invalid_pixels"),
    "ragged": (predict(b'{"pixels": [[1], 2]}', "application/json"), 422, "invalid_pixels"),
    "large pixels": (
        predict(json.dumps({"pixels": [[256] * 8] * 8}), "application/json"),
        422, "invalid_pixels"),
    "other keys": (
        predict(b'{"pixels": [], "x": 1}', "application/json"), 422, "invalid_pixels"),
    "a wrong parameter": (predict(b"x", params={"raster": "maybe"}), 422, "invalid_request"),
    "not there": (get("/nothing"), 404, "not_found"),
    "not allowed": (get("/predict"), 405, "method_not_allowed"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_typed(app, name):
    request, status, kind = REFUSED[name]
    answer = ask(app, request)[0]
    assert (answer.status_code, answer.json()["error"]["kind"]) == (status, kind)
    assert "\n" not in answer.json()["error"]["message"]
    # A client would ask again on a connection whose body was not read.
    assert (answer.headers.get("connection") == "close") == (status in (413, 415))


GETS = (
    "/", "/docs", "/regions", "/card", "/health", "/metrics", "/openapi.json",
)  # fmt: skip
POSTS = ("/predict", "/explain")


def test_head_is_answered_as_get_is_without_a_body(app):
    heads = ask(app, *({"method": "HEAD", "url": path} for path in GETS))
    gets = ask(app, *(get(path) for path in GETS))
    for head, full in zip(heads, gets, strict=True):
        assert (head.status_code, head.content) == (200, b"")
        if "/metrics" not in str(full.url):
            assert head.headers == full.headers


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_other_methods_are_told_those_that_are_allowed(app, method):
    allowed = {"GET, HEAD": GETS, "POST": POSTS}
    for methods, paths in allowed.items():
        if method in methods:
            continue
        for path, answer in zip(
            paths, ask(app, *({"method": method, "url": path} for path in paths)), strict=True
        ):
            assert (answer.status_code, answer.headers["Allow"]) == (405, methods), path
            if method != "HEAD":
                assert "Method Not Allowed" in answer.json()["error"]["message"]


def test_the_schema_says_what_is_taken_and_what_is_refused(app):
    schema = ask(app, get("/openapi.json"))[0].json()
    operations = {
        (path, method): operation
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    }
    assert {path for path, method in operations if method == "post"} == {
        "/predict", "/explain"
    }  # fmt: skip
    for (_, method), operation in operations.items():
        assert {"401", "404", "405", "421"} <= set(operation["responses"])
        assert "Allow" in operation["responses"]["405"]["headers"]
        assert ("requestBody" in operation) == (method == "post")
        if method == "post":
            assert {"400", "408", "413", "415", "422", "503"} <= set(operation["responses"])
            kinds = operation["requestBody"]["content"]
            assert {"image/*", "application/json"} <= set(kinds)
    pixels = operations["/predict", "post"]["requestBody"]["content"]["application/json"]["schema"]
    rows = pixels["properties"]["pixels"]
    assert (rows["maxItems"], rows["items"]["maxItems"]) == (8, 8)


@pytest.mark.parametrize(
    "headers",
    [[(b"host", b"a"), (b"host", b"a")], [(b"transfer-encoding", b"gzip, chunked")],
     [(b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")]],
)  # fmt: skip
def test_what_a_proxy_may_read_otherwise_is_refused_before_the_body(app, headers):
    status, n_parts = _asgi(app, [b"x"], headers)
    assert status in (400, 501)
    assert n_parts == 0


def test_a_body_in_tiny_parts_is_refused_in_time(app):
    status, n_parts = _asgi(app, [b"x"] * 5000)
    assert (status, n_parts) == (400, 1027)


def _asgi(app, parts, headers=()):
    """Return the status of a request whose body comes in parts, and how many were taken."""
    left, taken, said = list(parts), [], []

    async def receive():
        if not left:
            await asyncio.sleep(3600)
        taken.append(left.pop(0))
        return {"type": "http.request", "body": taken[-1], "more_body": True}

    async def send(message):
        said.append(message)

    scope = {
        "type": "http", "method": "POST", "path": "/predict", "query_string": b"",
        "headers": [(b"content-type", b"image/png"), *headers], "http_version": "1.1",
        "scheme": "http", "server": ("here", 80), "client": ("there", 1), "root_path": "",
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return said[0]["status"], len(taken)


def test_a_body_without_a_length_is_cut_off_while_it_comes(app):
    assert _asgi(app, [bytes(5000)] * 100) == (413, 5)
    # What it says of its own length is not trusted, and enough to refuse it.
    assert _asgi(app, [bytes(5000)] * 100, [(b"content-length", b"5")]) == (413, 5)
    assert _asgi(app, [bytes(5000)] * 100, [(b"content-length", b"9" * 30)]) == (413, 0)


def test_json_is_as_large_as_its_numbers_need(model):
    app = service(model)
    most = (1 << 16) + 64 * 64
    bodies = [b'{"pixels": [' + b" " * (size - 14) + b"]}" for size in (most, most + 1)]
    answers = ask(app, *(predict(body, "application/json") for body in bodies))
    assert [answer.status_code for answer in answers] == [422, 413]


def test_a_body_that_does_not_come_is_not_waited_for(model):
    assert _asgi(service(model, Limits(body_timeout=0.05)), [b"x"]) == (408, 1)


def test_a_busy_service_says_so_and_answers_other_requests(model, monkeypatch):
    gate, inside = threading.Event(), threading.Semaphore(0)

    def slow(*arguments):
        inside.release()
        assert gate.wait(60)
        return read_picture(*arguments)

    monkeypatch.setattr(answers, "read_picture", slow)
    app = service(model, Limits(threads=1, max_queue=1))

    async def asked():
        transport = httpx.ASGITransport(app)
        body = predict(png(np.zeros((8, 8), np.uint8)))
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            first = [asyncio.create_task(client.request(**body)) for _ in range(2)]
            while not inside.acquire(blocking=False):
                await asyncio.sleep(0.01)
            while "running 2.0" not in (await client.get("/metrics")).text:
                await asyncio.sleep(0.01)
            third = await client.request(**body)
            health = await client.get("/health")
            gate.set()
            return [*(await asyncio.gather(*first)), third, health]

    given = asyncio.run(asked())
    assert [a.status_code for a in given] == [200, 200, 503, 200]
    assert given[2].headers["Retry-After"] == "1"
    assert given[2].json()["error"]["kind"] == "busy"


def test_large_pictures_wait_for_each_other_and_small_ones_do_not_wait(model, monkeypatch):
    gate, reading = threading.Event(), threading.Semaphore(0)

    def slow(classifier, picture):
        if picture.shape[1] > 8:
            reading.release()
            assert gate.wait(60)
        return np.zeros((8, 8), np.uint8)

    monkeypatch.setattr(answers, "read_picture", slow)
    app = service(model, Limits(threads=1, max_queue=4, max_decoded_pixels=100))
    small, large = (predict(png(np.zeros((n, n), np.uint8))) for n in (8, 30))

    async def asked():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            tasks = [asyncio.create_task(client.request(**large)) for _ in range(4)]
            # Two are taken, of four places a quarter may wait.
            while not reading.acquire(blocking=False):
                await asyncio.sleep(0.01)
            others = [(await client.request(**small)).status_code for _ in range(3)]
            assert not gate.is_set()
            gate.set()
            return others, sorted(a.status_code for a in await asyncio.gather(*tasks))

    others, statuses = asyncio.run(asked())
    assert others == [200] * 3
    assert statuses == [200, 200, 503, 503]


def test_every_answer_has_safe_headers_and_is_counted(model, app):
    fresh = service(model)
    answers = ask(
        fresh, get("/"), get("/health"), get("/x"), get("/y"), predict(b""), predict(LARGE),
        get("/metrics"),
    )  # fmt: skip
    for answer in answers:
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "unsafe" not in answers[0].headers["Content-Security-Policy"]
    assert answers[1].json()["classes"] == list("0123456789")
    assert answers[1].json()["preprocessing"] == model.preprocessing.to_values()
    lines = answers[-1].text.splitlines()
    assert 'visionshare_requests_total{path="other",status="404"} 2.0' in lines
    assert 'visionshare_requests_total{path="/predict",status="422"} 1.0' in lines
    assert 'visionshare_request_seconds_bucket{le="+Inf"} 2.0' in lines
    assert "visionshare_request_seconds_count 2.0" in lines
    assert "visionshare_predictions_running 0.0" in lines


def test_an_unexpected_error_is_a_typed_answer(model, monkeypatch, caplog):
    monkeypatch.setattr(answers, "read_picture", lambda *_: 1 / 0)
    answer = ask(service(model), predict(png(np.zeros((8, 8), np.uint8))))[0]
    assert (answer.status_code, answer.json()["error"]["kind"]) == (500, "internal_error")
    assert "division" not in answer.text
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert "ZeroDivisionError" in caplog.text


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(-9, 300) | st.integers() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
)


@settings(max_examples=300, deadline=None)
@given(JSON.map(json.dumps).map(str.encode) | st.binary(), st.booleans())
def test_pixels_are_valid_or_refused(body, wrapped):
    if wrapped:
        body = b'{"pixels": ' + body + b"}"
    for shape in ((2,), (2, 3), (1, 1, 1)):
        # Nothing but a refusal may be raised.
        with contextlib.suppress(Refusal):
            made = pixels_of(body, shape)
            assert made.shape == shape
            assert np.isfinite(made).all()


def test_metrics_are_those_of_one_application(model):
    one, two = service(model), service(model)
    ask(one, get("/health"))
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    answer = ask(two, {**get("/metrics"), "headers": accept})[0]
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert 'path="/health"' not in answer.text
    assert 'path="/health"' in ask(one, get("/metrics"))[0].text


def test_limits_and_a_missing_package_are_said(model, monkeypatch):
    for wrong in ({"max_body_size": 0}, {"threads": 1.5}, {"body_timeout": float("nan")}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            Limits(**wrong)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ServiceError, match=r"pip install 'visionshare\[serve\]'"):
        service(model)
