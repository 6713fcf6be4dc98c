"""The process of the service."""

import gc
import signal
from pathlib import Path
from types import SimpleNamespace

from visionshare.apps.service import uvicorn_server
from visionshare.apps.service.limits import Limits
from visionshare.apps.service.server import Settings, run


def test_cycles_are_collected_often_while_it_serves(monkeypatch):
    """A collection of the many objects that the command line lets pile up stops the event loop."""
    seen = []
    server = SimpleNamespace(run=lambda sockets: seen.append(gc.get_threshold()[0]))
    monkeypatch.setattr(uvicorn_server, "limited_server", lambda *_: server)
    settings = Settings(Path("digits.safetensors"), Limits(), ("localhost",), None, "digits")
    before = gc.get_threshold(), signal.getsignal(signal.SIGHUP)
    gc.set_threshold(150_000)
    try:
        run(None, settings, None)
    finally:
        gc.unfreeze()
        gc.set_threshold(*before[0])
        signal.signal(signal.SIGHUP, before[1])
    assert seen == [700]
