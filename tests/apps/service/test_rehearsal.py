"""A uvicorn that calls other things than the service's limits stand on is refused."""

import subprocess
import sys

import h11
import pytest

from visionshare.apps.service.connections import Connection
from visionshare.apps.service.rehearsal import rehearse
from visionshare.errors import ServiceError


class Unparsed(Connection):
    """Does not give what arrives to the parser that the service put there."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.conn = h11.Connection(h11.SERVER)


class Silent(Connection):
    """Reports invalid requests by another name."""

    def send_400_response(self, msg):
        self.transport.close()


class Timeless(Connection):
    """Its deadlines never come."""

    def _start_timer(self, seconds, renew=False):
        pass


class Renamed(Connection):
    """Lacks a method."""

    def data_received(self, data):
        self.no_such_method(data)


class Bypassed(Connection):
    """Does not ask for room."""

    def displace(self):
        pass


def test_this_uvicorn_keeps_the_limits():
    rehearse()


@pytest.mark.parametrize("changed", [Unparsed, Silent, Timeless, Renamed, Bypassed])
def test_a_uvicorn_that_does_not_is_refused(changed):
    with pytest.raises(ServiceError, match=r"uvicorn [\d.]+: .*pip install 'uvicorn>="):
        rehearse(changed)


def test_a_uvicorn_without_the_class_is_refused():
    code = "import sys; sys.modules['uvicorn.protocols.http.h11_impl'] = None;"
    code += "from visionshare.cli.main import main; sys.exit(main(['serve', 'nothing']))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: uvicorn ")
    assert ended.stderr.count("\n") == 1
