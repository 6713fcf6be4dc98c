"""The configuration of nginx that the docs give, before the service."""

import contextlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from tests.service.clients import Server, png, request

CONFIGURATION = Path(__file__).parents[2] / "docs" / "nginx.conf"
PROGRAMS = {
    name: shutil.which(name) or shutil.which(name, path="/usr/sbin")
    for name in ("nginx", "openssl")
}
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
PICTURE = ("Content-Type: image/png", f"Content-Length: {len(png())}")
CLOSE = "Connection: close"


class Proxy:
    """nginx as the docs configure it, with another port, certificate, folder, and less patience."""

    def __init__(self, folder, service):
        key, certificate = folder / "key.pem", folder / "certificate.pem"
        subprocess.run(
            [PROGRAMS["openssl"], "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=example.org",
             "-keyout", key, "-out", certificate],
            check=True, capture_output=True,
        )  # fmt: skip
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        text = CONFIGURATION.read_text("utf-8").replace("send_timeout 10s", "send_timeout 1s")
        for pattern, value in {
            r"listen 443": f"listen 127.0.0.1:{self.port}",
            r"server 127.0.0.1:8000": f"server 127.0.0.1:{service.port}",
            r"ssl_certificate /.*;": f"ssl_certificate {certificate};",
            r"ssl_certificate_key /.*;": f"ssl_certificate_key {key};",
            r"http \{": "http { access_log off; "
            + " ".join(f"{name}_temp_path {folder}/{name};" for name in TEMPORARY),
        }.items():
            text, count = re.subn(pattern, value, text)
            assert count == 1, pattern
        path = folder / "nginx.conf"
        path.write_text(text, "utf-8")
        own = f"daemon off; pid {folder}/pid; error_log {folder}/log;"
        own += " user root;" if folder.owner() == "root" else ""
        self.process = subprocess.Popen(
            [PROGRAMS["nginx"], "-p", folder, "-c", path, "-e", folder / "log", "-g", own],
            stderr=subprocess.PIPE,
        )
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), self.connect():
                return
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < end
            time.sleep(0.05)

    def connect(self, content=b""):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        client = context.wrap_socket(plain, server_hostname="example.org")
        client.sendall(content)
        return client

    def say(self, content):
        with self.connect(content) as client:
            return everything(client)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=60)
        assert (self.process.returncode, said) == (0, b"")


def everything(client):
    answer = b""
    with contextlib.suppress(OSError):
        while part := client.recv(1 << 16):
            answer += part
    return answer


@pytest.fixture(scope="module")
def service():
    instance = Server("--host-name", "example.org")
    yield instance
    instance.end()


@pytest.fixture(scope="module")
def proxy(service, tmp_path_factory):
    for name, program in PROGRAMS.items():
        if program is None:
            pytest.skip(f"{name} is not installed")
    instance = Proxy(tmp_path_factory.mktemp("nginx"), service)
    yield instance
    instance.end()


def asked(method, path, *headers, body=b""):
    return request(method, path, *headers, body=body, host="example.org")


def status(answer):
    return int(answer[9:12])


def test_it_answers_as_the_service_does(proxy, service):
    for picture in (
        asked("POST", "/predict", *PICTURE, CLOSE, body=png()),
        asked("GET", "/health", CLOSE),
        asked("GET", "/nothing", CLOSE),
    ):
        given, direct = (one.say(picture).partition(b"\r\n\r\n") for one in (proxy, service))
        assert status(given[0]) == status(direct[0])
        assert given[2] == direct[2]
    # Those are the operator's.
    assert status(proxy.say(asked("GET", "/metrics", CLOSE))) == 404


def test_a_body_reaches_the_service_whole(proxy, service):
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in png()) + b"0\r\n\r\n"
    head = asked("POST", "/predict", "Content-Type: image/png", "Transfer-Encoding: chunked", CLOSE)
    assert status(proxy.say(head + chunks)) == 200
    # More than the service would take: they are one body when they reach it.
    many = head + b"1\r\nx\r\n" * 2000 + b"0\r\n\r\n"
    assert status(proxy.say(many)) == 422


@pytest.mark.parametrize(
    "headers",
    [
        ["Content-Length: 3", "Transfer-Encoding: chunked"],
        ["Content-Length: 3", "Content-Length: 3"],
        ["Transfer-Encoding: gzip, chunked"],
        ["Content-Length: 3", "Host: other"],
    ],
)
def test_requests_with_two_readings_do_not_reach_the_service(proxy, headers):
    hidden = b"3\r\nabc\r\n0\r\n\r\n" + asked("GET", "/health")
    answer = proxy.say(asked("POST", "/predict", "Content-Type: image/png", *headers) + hidden)
    assert status(answer) in (400, 501)
    assert answer.count(b"HTTP/1.1") == 1
    assert b"nginx" in answer


def test_an_address_has_few_connections(proxy):
    begun = asked("POST", "/predict", *PICTURE, body=png()[:-5])
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(proxy.connect(begun)) for _ in range(25)]
        for refused in clients[20:]:
            assert status(refused.recv(1 << 16)) == 503
        clients[0].sendall(png()[-5:])
        assert status(clients[0].recv(1 << 16)) == 200
    assert status(proxy.say(asked("GET", "/health", CLOSE))) == 200


def test_a_client_that_does_not_read_is_left(proxy):
    def ask(client):
        while True:
            client.sendall(asked("GET", "/") * 100)

    with proxy.connect() as client, pytest.raises((ConnectionError, ssl.SSLError)):
        ask(client)
