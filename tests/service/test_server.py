"""The process of the service."""

import gc
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Event

import httpx
import pytest

from tests.service.clients import SAMPLE, Server, request
from visionshare.errors import ServiceError
from visionshare.machine import system
from visionshare.service import Limits, access
from visionshare.service import server as module
from visionshare.service.server import Settings, embedded, reserved, run


def test_cycles_are_collected_often_while_it_serves(monkeypatch):
    """A collection of the many objects that the command line lets pile up stops the event loop."""
    seen = []

    async def serve(*_):
        seen.append(gc.get_threshold()[0])
        raise ServiceError("enough is seen")

    monkeypatch.setattr(module, "serve", serve)
    settings = Settings(Path("digits.safetensors"), Limits(), ("localhost",), None, "digits")
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    before = gc.get_threshold(), [signal.getsignal(number) for number in numbers]
    gc.set_threshold(150_000)
    try:
        with pytest.raises(ServiceError, match="enough"):
            run(None, settings, ("127.0.0.1", 1), lambda: None)
    finally:
        gc.set_threshold(*before[0])
        for number, handler in zip(numbers, before[1], strict=True):
            signal.signal(number, handler)
    assert seen == [700]


def test_it_ends_without_a_word():
    """granian's threads must not meet an interpreter that is taken apart.

    Of SIGINT every test that ends its server says so.
    """
    server = Server()
    server.process.send_signal(signal.SIGTERM)
    out, err = server.process.communicate(timeout=60)
    assert (server.process.returncode, out, err) == (-signal.SIGTERM, "", "")


_SHORT_END = f"""
from pathlib import Path
from visionshare.service import Limits
from visionshare.service.server import Settings, reserved, run

settings = Settings(Path({SAMPLE!r}), Limits(end_timeout=0.2), ("localhost",), None, "digits")
with reserved("127.0.0.1", 0) as address:
    app = settings.application()
    run(app, settings, address, lambda: print(address[1], flush=True))
"""


def test_requests_that_its_end_cuts_are_not_logged():
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", _SHORT_END], **pipes) as process:
        address = ("127.0.0.1", int(process.stdout.readline()))
        with socket.create_connection(address, 60) as client, httpx.Client() as other:
            head = ["Content-Type: image/png", "Content-Length: 100"]
            client.sendall(request("POST", "/predict", *head))
            assert other.get(f"http://127.0.0.1:{address[1]}/health").status_code == 200
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0


def test_two_services_do_not_share_a_port():
    server = Server()
    command = [sys.executable, "-m", "visionshare.cli", "serve", SAMPLE, "--port", str(server.port)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"error: 127.0.0.1:{server.port}: cannot listen there")
    assert ended.stderr.count("\n") == 1
    server.end()


@pytest.mark.parametrize("host", ["999.1.1.1", "1.2.3.4.5", "::g", "[::1", "1.2.3."])
def test_what_is_no_address_is_no_name(host, monkeypatch):
    """A name server that is asked for it may take a minute to answer."""
    monkeypatch.setattr(module, "within", None)
    with pytest.raises(ServiceError, match="no IP address, and no name of a host"):
        reserved(host, 0).__enter__()


def test_name_servers_need_not_answer(monkeypatch):
    end = Event()
    with pytest.raises(TimeoutError, match="no answer from a name server"):
        access.within(lambda: end.wait(60), 0.05)
    end.set()
    assert access.within(lambda: 3) == 3

    def no_answer(_):
        raise TimeoutError("no answer from a name server in 5 s")

    monkeypatch.setattr(module, "within", no_answer)
    monkeypatch.setattr(access, "within", no_answer)
    with pytest.raises(ServiceError, match=r"some\.host:0: cannot listen there \(no answer"):
        reserved("some.host", 0).__enter__()
    with reserved("127.0.0.1", 0):
        pass
    assert access.default_host_names("0.0.0.0")[-1] == socket.gethostname().lower()


def test_connections_are_as_many_as_files_allow(monkeypatch, caplog):
    with reserved("127.0.0.1", 0) as address:
        limits = Limits(max_connections=1000)
        assert embedded(None, limits, address).backpressure == 1000
        assert caplog.text == ""
        monkeypatch.setattr(module, "open_files", lambda wanted: 528)
        assert embedded(None, limits, address).backpressure == 400
    assert "528 open files are too few for 1000 connections: 400 are accepted" in caplog.text


def test_open_files_are_as_many_as_the_system_allows():
    code = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 200));"
    code += "from visionshare.machine.system import open_files;"
    code += "print(open_files(32), open_files(100), open_files(1000), end='')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("32 100 200", "")


def test_windows_has_no_limit_of_open_files(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    assert system.open_files(10**6) == 10**6
