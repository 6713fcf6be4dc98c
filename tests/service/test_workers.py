"""Several processes, and another classifier without a restart, while clients ask."""

import os
import re
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.service.clients import SAMPLE, Server, png
from visionshare import load
from visionshare.cli.main import main

KIND = {"Content-Type": "image/png"}


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def workers(server):
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    # Another child keeps count of what they share.
    pids = children.read_text().split()
    return [p for p in pids if b"spawn_main" in Path(f"/proc/{p}/cmdline").read_bytes()]


def listening(server):
    """Return the number of sockets that listen at the server's port: one per ready worker."""
    ends = f":{server.port:04X}"
    fields = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(local.endswith(ends) and state == "0A" for _, local, _, state, *_ in fields)


@contextmanager
def load_on(server, n_clients=3):
    """Predict during the block; yields labels of answers, and errors of connections."""
    stop, labels, errors = threading.Event(), [], []

    def ask():
        while not stop.is_set():
            try:
                with server.client() as client:
                    for _ in range(20):
                        answer = client.post("/predict", content=png(), headers=KIND)
                        assert answer.status_code == 200, answer.text
                        labels.append(answer.json()["label"])
            except httpx.TransportError as error:
                errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(n_clients)]
    for thread in threads:
        thread.start()
    try:
        yield labels, errors
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=["one process", "two workers"])
def test_sighup_loads_the_file_again_and_every_request_is_answered(tmp_path, options):
    path = tmp_path / "digits.safetensors"
    model = load(SAMPLE)
    model.save(path)
    server = Server(*options, path=path)

    def is_new(answers=10):
        with server.client() as client:
            kinds = (client.get("/health", headers={"Connection": "close"}) for _ in range(answers))
            return all(answer.json()["classes"][0] == "new-0" for answer in kinds)

    if options:
        wait_for(lambda: len(workers(server)) == 2)
    with load_on(server) as (labels, errors):
        wait_for(lambda: len(labels) > 9)
        replace(model, classes=[f"new-{name}" for name in model.classes_]).save(path)
        assert not is_new()

        def reloaded():
            # A worker that starts reads the file as it is.
            server.process.send_signal(signal.SIGHUP)
            return is_new()

        wait_for(reloaded)
        before = len(labels)
        wait_for(lambda: len(labels) > before + 9)
        # An invalid file changes nothing.
        path.write_bytes(b"no classifier")
        server.process.send_signal(signal.SIGHUP)
        assert "not reloaded" in server.process.stderr.readline()
        assert is_new()
    assert errors == []
    assert not labels[0].startswith("new-")
    assert all(label.startswith("new-") for label in labels[before:])
    server.process.send_signal(signal.SIGINT)
    out, err = server.process.communicate(timeout=60)
    assert (server.process.returncode, out) == (0, "")
    assert all("not reloaded" in line for line in err.splitlines())


def test_workers_share_their_metrics_and_are_replaced_under_load():
    server = Server("--workers", "2")

    def counted():
        with server.client() as client:
            text = client.get("/metrics").text
        found = re.search(r'requests_total{path="/predict",status="200"} (\d+)', text)
        return int(found[1]) if found else 0

    # A worker that has started does not listen yet.
    wait_for(lambda: listening(server) == 2)
    with load_on(server) as (labels, errors):
        wait_for(lambda: len(labels) > 20)
        first = workers(server)
        os.kill(int(first[0]), signal.SIGKILL)
        assert "another one is started" in server.process.stderr.readline()
        # The other one goes on.
        before = len(labels)
        wait_for(lambda: len(labels) > before + 20)
        wait_for(lambda: len(workers(server)) == 2 and workers(server) != first)
    # Only connections of the one that was killed ended, once each.
    assert len(errors) <= 3
    # What the ended one counted stays counted, but for what it was about to answer.
    wait_for(lambda: counted() >= len(labels))
    assert counted() <= len(labels) + len(errors)
    sums = {counted() for _ in range(8)}
    assert len(sums) == 1
    server.end()


@pytest.mark.parametrize(
    ("system", "number", "most"), [("linux", 0, 256), ("linux", 257, 256), ("win32", 2, 1)]
)
def test_a_wrong_number_of_workers_is_refused(monkeypatch, capsys, system, number, most):
    monkeypatch.setattr(sys, "platform", system)
    assert main(["serve", SAMPLE, "--workers", str(number)]) == 2
    said = capsys.readouterr().err
    assert f"--workers: got {number}; accepted: a number of processes from 1 to {most}" in said
