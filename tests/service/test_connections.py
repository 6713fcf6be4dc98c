"""What connections are promised, with predictions that wait for the test."""

import asyncio
import contextlib
import gc
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from tests.service.clients import png, request
from visionshare import CompactClassifier, Pixels
from visionshare.errors import InputError, ServiceError
from visionshare.service import Limits, service
from visionshare.service.server import reserved, serve

FAMILY = Pixels().fit(np.zeros((1, 2, 2), np.uint8)).take([0, 1])
MODEL = CompactClassifier(FAMILY, np.eye(2), np.zeros(2), np.array(["a", "b"]))
PREDICT = request(
    "POST", "/predict", "Content-Type: image/png", f"Content-Length: {len(png())}", body=png()
)
CHUNKED = request("POST", "/predict", "Content-Type: image/png", "Transfer-Encoding: chunked")
HALF = PREDICT[:-9]
HEALTH, METRICS = (request("GET", path, "Connection: close") for path in ("/health", "/metrics"))


class Running:
    """The service in a thread, whose pictures are read once the test opens the gate."""

    def __init__(self, address, limits):
        self.reading, self.gate = threading.Semaphore(0), threading.Event()
        self.app = service(MODEL, limits)
        self.address, self.limits = address, limits
        self.clients, self.is_ready = [], threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self.thread.start()
        assert self.is_ready.wait(60)

    async def _serve(self):
        self.loop, self.told = asyncio.get_running_loop(), asyncio.Event()
        await serve(self.app, self.limits, self.address, self.is_ready.set, self.told)

    def read(self, classifier, picture):
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
        memory = self.app.state.worker.bodies
        before = memory.used
        client = self.connect(content)
        while memory.used == before:
            time.sleep(0.001)
        return client

    def tell(self):
        """Tell the service to end."""
        # It may have ended already.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.told.set)

    def end(self):
        self.gate.set()
        for client in self.clients:
            client.close()
        self.tell()
        self.thread.join()


@contextlib.contextmanager
def running(**limits):
    with reserved("127.0.0.1", 0) as address:
        server = Running(address, Limits(**{"threads": 4} | limits))
        with patch("visionshare.service.answers.read_picture", server.read):
            try:
                yield server
            finally:
                server.end()


@pytest.fixture(scope="module")
def shared():
    """Return a service that reads pictures at once."""
    with running() as server:
        server.gate.set()
        yield server


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


def test_health_is_answered_where_the_queue_is_full():
    with running(threads=1, max_queue=1) as server:
        first = server.predicting()
        second = server.connect(PREDICT)
        while server.app.state.worker.running < 2:
            time.sleep(0.001)
        last = PREDICT.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
        assert kind_of(server.say(last)) == (503, "busy")
        for path in ("/health", "/metrics"):
            assert server.say(request("GET", path, "Connection: close"))[9:12] == b"200"
        server.gate.set()
        for client in (first, second):
            assert client.recv(12) == b"HTTP/1.1 200"


def test_the_body_that_began_first_is_refused_where_too_many_arrive():
    with running(max_bodies=2) as server:
        first, second = server.sending(HALF), server.sending(HALF)
        third = server.connect(HALF)
        assert kind_of(everything(first)) == (503, "busy")
        server.gate.set()
        for client in (second, third):
            client.sendall(PREDICT[len(HALF) :])
            assert client.recv(12) == b"HTTP/1.1 200"


def test_the_body_that_began_first_is_refused_where_memory_is_short():
    size = 1 << 20
    with running(max_body_size=size, max_body_memory=size, body_timeout=60) as server:
        head = request("POST", "/predict", "Content-Type: image/png", f"Content-Length: {size}")
        first = server.sending(head + bytes(size // 2 + 1))
        second = server.connect(head + bytes(size - 9))
        assert kind_of(everything(first)) == (503, "busy")
        second.sendall(bytes(9))
        # It is read, and no picture.
        assert second.recv(12) == b"HTTP/1.1 422"


def test_late_clients_are_left():
    # Long enough for a client of a busy machine to send what it has.
    with running(header_timeout=0.5, body_timeout=0.5) as server:
        assert server.say(b"") == b""
        assert server.say(b"GET / HTTP/1.1\r\n") == b""
        assert kind_of(server.say(HALF)) == (408, "body_timeout")
        # The next request does not come.
        assert kind_of(server.say(request("GET", "/health"))) == (200, None)


def test_a_body_that_is_refused_does_not_keep_its_connection(shared):
    """The server waits for the rest of a body as long as anything in Python refers to it."""
    begun = (
        HALF, HALF.replace(b"image/png", b"text/plain"), HALF.replace(b"/predict", b"/nothing"),
        HALF.replace(b"/predict", b"/health"), HALF.replace(b"\r\n", b"\r\nHost: b\r\n", 1),
        HALF.replace(b"Content-Length: ", b"Content-Length: 99999999"),
    )  # fmt: skip
    with running(body_timeout=0.1) as server:
        gc.disable()
        try:
            statuses = [int(server.say(content)[9:12]) for content in begun]
        finally:
            gc.enable()
    assert statuses == [408, 415, 404, 405, 400, 413]


def test_chunks_of_one_byte_stop_nobody(shared):
    body = b"".join(b"1\r\n%c\r\n" % byte for byte in png()) + b"0\r\n\r\n"
    assert shared.connect(CHUNKED + body).recv(12) == b"HTTP/1.1 200"
    # As many as a body may have, and more.
    assert kind_of(shared.say(CHUNKED + b"1\r\nx\r\n" * 1030)) == (400, "small_chunks")
    enough = shared.connect(CHUNKED + b"1\r\nx\r\n" * 1000 + (b"200\r\n%b\r\n" % bytes(512)) * 99)
    enough.sendall(b"0\r\n\r\n")
    # It is read, and no picture.
    assert enough.recv(12) == b"HTTP/1.1 422"
    stop = threading.Event()

    def send(_):
        while not stop.is_set():
            with contextlib.suppress(OSError), socket.create_connection(shared.address) as client:
                client.sendall(CHUNKED)
                while not stop.is_set():
                    client.sendall(b"1\r\nx\r\n" * 1000)

    with ThreadPoolExecutor(4) as pool:
        senders = pool.map(send, range(4))
        try:
            for _ in range(20):
                assert kind_of(shared.say(HEALTH)) == (200, None)
        finally:
            stop.set()
        assert list(senders) == [None] * 4


@pytest.mark.parametrize(
    "chunk", [b"g\r\nabc\r\n", b"-1\r\nabc\r\n", b"3\r\nabcd\r\n", b"f" * 17 + b"\r\n", b"3\nabc\n"]
)
def test_a_malformed_chunk_is_refused_without_a_word_in_the_log(shared, chunk, caplog):
    answer = shared.say(CHUNKED + chunk + b"0\r\n\r\n" + HEALTH)
    assert kind_of(answer) == (400, "incomplete_body")
    assert answer.count(b"HTTP/1.1") == 1
    assert caplog.records == []


def test_pipelined_requests_are_answered_in_turn(shared):
    paths = ["/health", "/nothing", "/"] * 100
    answer = shared.say(b"".join(request("GET", path) for path in paths) + HEALTH)
    statuses = [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [200, 404, 200] * 100 + [200]


def test_a_client_that_does_not_read_stops_nobody_and_not_the_end():
    with running(end_timeout=0.2) as server, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.connect(server.address)
        client.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                client.send(request("GET", "/") * 1000)
        assert kind_of(server.say(HEALTH)) == (200, None)
        server.tell()
        server.thread.join(60)
        assert not server.thread.is_alive()


def test_a_client_that_closes_its_half_is_left(shared):
    client = shared.connect(PREDICT[:-5])
    client.shutdown(socket.SHUT_WR)
    assert b"HTTP/1.1 200" not in everything(client)
    while shared.app.state.worker.bodies.used:
        # Nothing of it is kept.
        time.sleep(0.001)


def test_requests_in_progress_are_answered_when_the_service_ends():
    with running() as server:
        client = server.predicting()
        server.tell()
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


def test_an_address_is_given_once():
    with reserved("127.0.0.1", 0) as (host, port):
        assert port > 0
        with pytest.raises(ServiceError, match=rf"{host}:{port}: cannot listen there"):
            reserved(host, port).__enter__()
    with running() as server, pytest.raises(ServiceError, match="cannot listen there"):
        reserved(*server.address).__enter__()
    # Connections linger there, but nobody listens.
    with reserved(*server.address) as address:
        assert address == server.address
    # Another server that shares ports.
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(ServiceError, match="cannot listen there"):
            reserved(*other.getsockname()).__enter__()


def test_a_name_without_an_address_is_refused():
    with pytest.raises(ServiceError, match="cannot listen there"):
        reserved("no.such.name.invalid", 0).__enter__()


def test_headers_need_some_room():
    with pytest.raises(InputError, match=r"max_header_size: got 8191; accepted: .* 8192"):
        Limits(max_header_size=8191)
