"""The service, as its own process, under clients that mean harm."""

import concurrent.futures
import contextlib
import socket
import struct
import zlib

import httpx
import pytest

from tests.service.clients import Server, png, request
from visionshare.service.access import default_host_names

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def server():
    instance = Server("--header-timeout", "2", "--body-timeout", "3", "--jobs", "2")
    yield instance
    instance.end()


@pytest.mark.parametrize(
    ("number", "first"),
    [(600, b""), (520, b"GET / HTTP/1.1\r\nHost: localhost\r\nX"), (600, request("GET", "/x"))],
    ids=["idle", "half-headers", "kept-alive"],
)
def test_connections_that_wait_do_not_stop_others(server, number, first):
    with contextlib.ExitStack() as stack:
        for _ in range(number):
            connection = stack.enter_context(server.connect())
            with contextlib.suppress(OSError):
                connection.sendall(first)
        server.check_others()


def test_bodies_that_do_not_end_are_bounded_and_do_not_stop_others(server):
    before = server.memory()
    head = request("POST", "/predict", "Content-Type: image/png", "Content-Length: 8000000")
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            connection = stack.enter_context(server.connect())
            with contextlib.suppress(OSError):
                connection.sendall(head + bytes(5_000_000))
        server.check_others()
        # At most 64 MiB of bodies are held, and what the server reads ahead; 300 MB were sent.
        assert server.memory() - before < 160 << 20


def test_late_headers_and_bodies_are_refused(server):
    assert server.say(b"GET / HTTP/1.1\r\n") == b""
    assert server.say(b"") == b""
    head = request("POST", "/predict", "Content-Type: image/png", "Content-Length: 9")
    assert server.say(head + b"x").startswith(b"HTTP/1.1 408")


AMBIGUOUS = {
    "differing lengths": ["Content-Length: 3", "Content-Length: 4"],
    "a list of lengths": ["Content-Length: 3, 3"],
    "another encoding": ["Transfer-Encoding: gzip, chunked"],
    "an encoding twice": ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
    "an unknown encoding": ["Transfer-Encoding: xchunked"],
    "no encoding": ["Transfer-Encoding: "],
    "a signed length": ["Content-Length: +3"],
    "a folded header": ["X-A: 1\r\n 2"],
    "a bare carriage return": ["X-A: 1\rX-B: 2"],
    "a blank before the colon": ["Content-Length : 3"],
    "two hosts": ["Host: other"],
    "long headers": ["X-A: " + "a" * 20_000],
}
HIDDEN = b"3\r\nabc\r\n0\r\n\r\n" + request("GET", "/metrics")


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_requests_with_several_readings_are_refused(server, name):
    head = request("POST", "/predict", "Content-Type: image/png", *AMBIGUOUS[name])
    answer = server.say(head + HIDDEN)
    assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 431", b"HTTP/1.1 501")
    assert b"connection: close" in answer.lower()
    assert answer.count(b"HTTP/1.1") == 1


def test_chunks_are_read_where_there_is_a_length_too_and_nothing_after_them(server):
    lengths = ["Content-Length: 3", "Transfer-Encoding: chunked"]
    for headers in (lengths, lengths[::-1]):
        answer = server.say(
            request("POST", "/predict", "Content-Type: image/png", *headers) + HIDDEN
        )
        assert answer.startswith(b"HTTP/1.1 422")
        assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("version", ["1.0", "1.2", "2.0", "0.9"])
def test_chunks_are_of_http_1_1_alone(server, version):
    head = request("POST", "/predict", "Transfer-Encoding: chunked")
    answer = server.say(head.replace(b"HTTP/1.1", b"HTTP/" + version.encode()) + b"0\r\n\r\n")
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400")


def test_bytes_after_the_last_request_are_not_read(server):
    picture = request(
        "POST", "/predict", "Content-Type: image/png", "Connection: close",
        f"Content-Length: {len(png())}", body=png(),
    )  # fmt: skip
    for last in (request("GET", "/health", "Connection: close"), picture):
        for after in (b"x", b"\r\n", request("GET", "/metrics")):
            answer = server.say(last + after)
            assert answer.startswith(b"HTTP/1.1 200")
            assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"[]," * 3_300_000 + b"[]]", b'{"pixels": ' + b"[" * 30_000,
        b"{" * 60_000, b"[" + b"0," * 30_000 + b"0]", b'{"pixels": "' + b"a" * 50_000 + b'"}',
    ],
    ids=["empty lists", "deep", "objects", "numbers", "text"],
)  # fmt: skip
def test_large_json_is_refused_and_others_are_served(server, body):
    kind = {"Content-Type": "application/json"}
    with concurrent.futures.ThreadPoolExecutor(4) as pool, server.client() as client:
        answers = [pool.submit(client.post, "/predict", content=body, headers=kind) for _ in "1234"]
        server.check_others()
        for answer in answers:
            with contextlib.suppress(httpx.TransportError):
                # Refused by its length, the rest of it may not be read.
                assert answer.result().status_code in (413, 422)


def _bomb(width, height, color=2):
    """Return a small PNG of many pixels."""

    def chunk(kind, data):
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    row = bytes(1 + width * {0: 1, 2: 3, 6: 4}[color])
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    chunks = [chunk(b"IHDR", header), chunk(b"IDAT", data), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def test_pictures_of_many_pixels_stop_nobody_and_give_their_memory_back(server):
    server.check_others()
    before = server.memory()
    too_large, allowed = _bomb(11_000, 11_000, 0), _bomb(5_700, 5_700, 2)
    assert len(too_large) < 150_000
    kind = {"Content-Type": "image/png"}
    with server.client() as client, concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert client.post("/predict", content=too_large, headers=kind).status_code == 422
        bodies = [allowed] * 4
        answers = [pool.submit(client.post, "/predict", content=b, headers=kind) for b in bodies]
        concurrent.futures.wait(answers, return_when=concurrent.futures.FIRST_COMPLETED)
        server.check_others()
        # Others were served before them.
        assert not all(answer.done() for answer in answers)
        assert [answer.result().status_code for answer in answers] == [200] * 4
    assert server.memory() - before < 60 << 20


def test_names_of_the_host():
    own = {socket.gethostname().lower(), socket.getfqdn().lower()}
    assert set(default_host_names("0.0.0.0")) >= own | {"localhost", "127.0.0.1"}
    assert not own - {"localhost"} & set(default_host_names("127.0.0.1"))


def test_hosts_and_tokens(server, tmp_path):
    def status(answer):
        return int(answer.split(b" ")[1])

    close = "Connection: close"
    for host in ("localhost", "127.0.0.1:80", "LOCALHOST.", "[::1]:8000"):
        assert status(server.say(request("GET", "/health", close, host=host))) == 200
    for host in ("evil.example", "localhost.evil.example", "", "localhost@evil", "10.0.0.1"):
        assert status(server.say(request("GET", "/health", close, host=host))) == 421
    assert status(server.say(b"GET / HTTP/1.0\r\n\r\n")) == 421
    (tmp_path / "token").write_text(TOKEN + "\n")
    guarded = Server("--token-file", str(tmp_path / "token"), "--host-name", "*")
    with guarded.client() as client:
        assert client.get("/", headers={"Host": "any.example"}).status_code == 200
        for value in (None, "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer \xff"):
            headers = {} if value is None else {"Authorization": value.encode("latin-1")}
            refused = client.get("/metrics", headers=headers)
            assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
        allowed = {"Authorization": f"Bearer {TOKEN}"}
        assert client.get("/metrics", headers=allowed).status_code == 200
        # Refused before its body is read.
        assert client.post("/predict", content=bytes(100)).status_code == 401
    guarded.end()
