"""Several processes, and another classifier without a restart."""

import os
import re
import signal
import time
from dataclasses import replace
from pathlib import Path

from tests.apps.service.clients import SAMPLE, Server, png
from visionshare import load


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_sighup_loads_the_file_again(tmp_path):
    path = tmp_path / "digits.safetensors"
    model = load(SAMPLE)
    model.save(path)
    server = Server(path=path)
    with server.client() as client:
        renamed = replace(model, classes=[f"new-{name}" for name in model.classes_])
        renamed.save(path)
        assert client.get("/health").json()["classes"][0] == "0"
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: client.get("/health").json()["classes"][0] == "new-0")
        answer = client.post("/predict", content=png(), headers={"Content-Type": "image/png"})
        assert answer.json()["label"].startswith("new-")
        # An invalid file changes nothing.
        path.write_bytes(b"no classifier")
        server.process.send_signal(signal.SIGHUP)
        assert "not reloaded" in server.process.stderr.readline()
        assert client.get("/health").json()["classes"][0] == "new-0"
    server.end()


def test_workers_share_their_metrics_and_are_replaced():
    server = Server("--workers", "2")

    def workers():
        children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        pids = children.read_text().split()
        # Another child keeps count of what they share.
        return [p for p in pids if b"spawn_main" in Path(f"/proc/{p}/cmdline").read_bytes()]

    def counted():
        with server.client() as client:
            text = client.get("/metrics").text
        found = re.search(r'requests_total{path="/predict",status="200"} (\d+)', text)
        return int(found[1]) if found else 0

    def predict(number):
        for _ in range(number):
            with server.client() as client:
                kind = {"Content-Type": "image/png"}
                assert client.post("/predict", content=png(), headers=kind).status_code == 200

    wait_for(lambda: len(workers()) == 2)
    predict(20)
    # Counted once the answer is sent.
    wait_for(lambda: counted() == 20)
    assert [counted() for _ in range(8)] == [20] * 8
    first = workers()
    os.kill(int(first[0]), signal.SIGKILL)
    assert "another one is started" in server.process.stderr.readline()
    wait_for(lambda: len(workers()) == 2 and workers() != first)
    predict(5)
    # What the ended one counted stays counted.
    wait_for(lambda: counted() == 25)
    server.end()
