"""What connections are promised, with predictions that wait for the test."""

import contextlib
import json
import socket
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from tests.apps.service.clients import png, request
from visionshare import CompactClassifier, Pixels
from visionshare.apps.service import Limits, service
from visionshare.apps.service.uvicorn_server import limited_server

FAMILY = Pixels().fit(np.zeros((1, 2, 2), np.uint8)).take([0, 1])
MODEL = CompactClassifier(FAMILY, np.eye(2), np.zeros(2), np.array(["a", "b"]))
PREDICT = request(
    "POST", "/predict", "Content-Type: image/png", f"Content-Length: {len(png())}", body=png()
)
HALF = PREDICT[:-9]
HEALTH, METRICS = (request("GET", path, "Connection: close") for path in ("/health", "/metrics"))


class Running:
    """The service in a thread, whose pictures are read once the test opens the gate."""

    def __init__(self, listener, limits):
        self.reading, self.gate = threading.Semaphore(0), threading.Event()
        self.app = service(MODEL, limits, self._read)
        self.address = listener.getsockname()
        self.server = limited_server(self.app, limits, listener)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": []})
        self.thread.start()
        self.clients = []

    def _read(self, classifier, file, max_pixels):
        self.reading.release()
        assert self.gate.wait(60)
        return np.zeros((2, 2), np.uint8)

    def connect(self, content=b""):
        """Return a client that has sent something."""
        client = socket.create_connection(self.address, timeout=60)
        self.clients.append(client)
        client.sendall(content)
        return client

    def say(self, content):
        """Return all that the service answers."""
        return everything(self.connect(content))

    def predicting(self, content=PREDICT):
        """Return a client whose picture is being read."""
        client = self.connect(content)
        assert self.reading.acquire(timeout=60)
        return client

    def sending(self, content):
        """Return a client whose body has arrived in part."""
        memory = self.app.state.worker.memory
        before = memory.used
        client = self.connect(content)
        while memory.used == before:
            time.sleep(0.001)
        return client

    def end(self):
        self.gate.set()
        for client in self.clients:
            client.close()
        self.server.should_exit = True
        self.thread.join()


@contextlib.contextmanager
def running(**limits):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Running(listener, Limits(**{"threads": 4} | limits))
        try:
            yield server
        finally:
            server.end()


def everything(client):
    """Return what a client gets until its connection is closed."""
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(1 << 20):
            answer += part
    return answer


def kind_of(answer):
    """Return the status of an answer, and the kind of its error."""
    head, _, body = answer.partition(b"\r\n\r\n")
    content = json.loads(body)
    kind = content["error"]["kind"] if "error" in content else None
    return int(head.split()[1]), kind


def test_health_is_answered_where_all_connections_are():
    with running(max_connections=2, health_reserve=1) as server:
        answered = [server.predicting() for _ in range(2)]
        assert kind_of(server.say(HEALTH)) == (200, None)
        assert kind_of(server.say(METRICS)) == (503, "busy")
        for path in ("/v2/health/live", "/v2/health/ready"):
            assert server.say(request("GET", path, "Connection: close"))[9:12] == b"200"
        quiet = server.connect()
        # The one that is quiet gives way.
        assert kind_of(server.say(HEALTH)) == (200, None)
        assert everything(quiet) == b""
        server.gate.set()
        for client in answered:
            assert client.recv(12) == b"HTTP/1.1 200"


def test_a_new_connection_displaces_one_that_waits_then_one_that_sends():
    with running(max_connections=3) as server:
        answered, sending = server.predicting(), server.sending(HALF)
        waiting = server.connect()
        assert kind_of(server.say(HEALTH)) == (200, None)
        assert everything(waiting) == b""
        another = server.sending(HALF)
        assert kind_of(server.say(HEALTH)) == (200, None)
        assert everything(sending) == b""
        another.sendall(PREDICT[len(HALF) :])
        server.gate.set()
        for client in (answered, another):
            assert client.recv(12) == b"HTTP/1.1 200"


def test_late_clients_are_told_so():
    with running(header_timeout=0.1, body_timeout=0.1, idle_timeout=0.1) as server:
        assert server.say(b"") == b""
        assert kind_of(server.say(b"GET / HTTP/1.1\r\n")) == (408, "header_timeout")
        assert kind_of(server.say(HALF)) == (408, "body_timeout")
        # The next request does not come.
        assert kind_of(server.say(request("GET", "/health"))) == (200, None)


def test_a_client_that_does_not_read_is_left():
    with running(body_timeout=0.2) as server:
        client = server.connect()
        many = request("GET", "/openapi.json") * 1_000_000
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            client.sendall(many)


def test_another_version_is_refused():
    with running() as server:
        old = request("GET", "/health").replace(b"HTTP/1.1", b"HTTP/1.2")
        assert kind_of(server.say(old)) == (505, "invalid_request")


def test_the_body_that_began_first_is_refused_where_memory_is_short():
    size = 1 << 20
    with running(max_body_size=size, max_body_memory=size, body_timeout=60) as server:
        head = request("POST", "/predict", "Content-Type: image/png", f"Content-Length: {size}")
        first = server.sending(head + bytes(size // 2 + 1))
        second = server.connect(head + bytes(size - 9))
        assert kind_of(everything(first)) == (503, "busy")
        second.sendall(bytes(9))
        server.gate.set()
        assert second.recv(12) == b"HTTP/1.1 200"


def test_requests_in_progress_are_answered_when_the_service_ends():
    with running() as server:
        client = server.predicting()
        server.server.should_exit = True
        # It accepts no more: the end has begun.
        with contextlib.suppress(ConnectionError):
            while server.say(HEALTH):
                pass
        server.gate.set()
        assert kind_of(everything(client)) == (200, None)


def test_requests_in_progress_end_with_the_former_classifier():
    last = PREDICT.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
    with running() as server:
        client = server.predicting(last)
        server.app.state.worker.reload(replace(MODEL, classes=["new-a", "new-b"]))
        server.gate.set()
        assert b'"label":"a"' in everything(client)
        assert b'"label":"new-a"' in server.say(last)
