"""HTTP/1 messages with one reading: what proxies and servers may read differently is refused."""

from __future__ import annotations

import re
from typing import Any

import h11

__all__ = ["StrictConnection"]

# A line that does not end with CR LF, a CR elsewhere, or a header that continues on the next line.
_AMBIGUOUS = re.compile(rb"(?<!\r)\n|\r(?!\n)(?=.)|\n[ \t]", re.DOTALL)
_END = b"\r\n\r\n"


class StrictConnection(h11.Connection):
    """The server's end of a connection; h11's rules and stricter ones.

    Refused are ``Content-Length`` together with ``Transfer-Encoding``, a transfer encoding in
    HTTP/1.0, lines that do not end with CR LF, headers over several lines, and versions other than
    1.0 and 1.1.

    Parameters
    ----------
    max_header_size : int
        Bytes of a request's line and headers.

    Attributes
    ----------
    error : h11.RemoteProtocolError or None
        What was wrong with what arrived last.

    Examples
    --------
    >>> connection = StrictConnection(1 << 14)
    >>> head = b"POST / HTTP/1.1\\r\\nHost: a\\r\\n"
    >>> framing = b"Content-Length: 3\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"
    >>> connection.receive_data(head + framing)
    >>> connection.next_event()
    Traceback (most recent call last):
    h11._util.RemoteProtocolError: Content-Length and Transfer-Encoding in one request
    """

    def __init__(self, max_header_size: int) -> None:
        super().__init__(h11.SERVER, max_header_size)
        self._max_header_size = max_header_size
        self.error: h11.RemoteProtocolError | None = None

    @property
    def is_between_requests(self) -> bool:
        """Whether nothing of a next request has arrived."""
        return self.their_state is h11.IDLE and not self.trailing_data[0]

    def next_event(self) -> Any:
        """Return the next event, see :meth:`h11.Connection.next_event`.

        Raises
        ------
        h11.RemoteProtocolError
            If what arrived is no request, or one with several readings.
        """
        try:
            if self.their_state is h11.IDLE:
                self._check_lines(self.trailing_data[0])
            event = super().next_event()
            if isinstance(event, h11.Request):
                _check_request(event)
        except h11.RemoteProtocolError as error:
            self.error = error
            raise
        return event

    def _check_lines(self, received: bytes) -> None:
        end = received.find(_END)
        head = received if end < 0 else received[: end + len(_END)]
        if len(head) > self._max_header_size:
            message = f"the headers have more than {self._max_header_size} bytes"
            raise h11.RemoteProtocolError(message, error_status_hint=431)
        if _AMBIGUOUS.search(head):
            raise h11.RemoteProtocolError("a line of the headers does not end with CR LF")


def _check_request(request: h11.Request) -> None:
    names = {name for name, _ in request.headers}
    if request.http_version not in (b"1.0", b"1.1"):
        raise h11.RemoteProtocolError("only HTTP/1.0 and HTTP/1.1", error_status_hint=505)
    if b"transfer-encoding" in names and b"content-length" in names:
        raise h11.RemoteProtocolError("Content-Length and Transfer-Encoding in one request")
    if b"transfer-encoding" in names and request.http_version == b"1.0":
        raise h11.RemoteProtocolError("Transfer-Encoding in HTTP/1.0")
