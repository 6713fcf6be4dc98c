"""Who may ask: names of the host that requests must carry, a token, and one reading."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TypeVar

from starlette.responses import JSONResponse
from starlette.types import Scope

from visionshare.errors import InputError, ServiceError

T = TypeVar("T")

# Without a token: what says whether the service works, and the page, which asks for the token.
_OPEN = ("/", "/docs", "/regions", "/health")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[0-9a-zA-Z._-]+)(?::[0-9]{1,5})?")


def within(look_up: Callable[[], T], seconds: float = 5.0) -> T:
    """Return what a function returns, if it does so in time: name servers may never answer."""
    found: Future[T] = Future()

    def work() -> None:
        try:
            found.set_result(look_up())
        except Exception as error:
            found.set_exception(error)

    # Neither the caller nor the process's end waits for such a thread.
    Thread(target=work, daemon=True).start()
    try:
        return found.result(seconds)
    except FutureTimeout:
        raise TimeoutError(f"no answer from a name server in {seconds:g} s") from None


def host_of(header: str) -> str:
    """Return the name or address in a ``Host`` header, in lower case; empty where it has none."""
    match = _HOST.fullmatch(header)
    return match[1].strip("[]").rstrip(".").lower() if match else ""


def default_host_names(host: str) -> tuple[str, ...]:
    """Return the names that a service on an address answers to, beside that of the connection."""
    names = [host, "localhost", "127.0.0.1", "::1"]
    if host in ("0.0.0.0", "::", ""):
        names.append(socket.gethostname())
        with suppress(TimeoutError):
            names.append(within(socket.getfqdn))
    return tuple(dict.fromkeys(name.lower() for name in names if name))


def read_token(path: Path) -> str:
    """Return the token in a file: one line of visible ASCII characters."""
    try:
        with path.open("rb") as file:
            content = file.read(4097)
    except OSError as error:
        raise ServiceError(f"{path}: cannot be read ({error.strerror})") from None
    token = content.strip()
    if not re.fullmatch(rb"[!-~]{16,4096}", token):
        accepted = "a file with one line of 16 to 4096 visible ASCII characters"
        raise InputError("--token-file", str(path), accepted)
    return token.decode("ascii")


class Access:
    """Refuses requests for other hosts, without the token, or that a proxy may read otherwise."""

    def __init__(self, host_names: Sequence[str], token: str | None) -> None:
        self._any_host = "*" in host_names
        self._hosts = {name.strip("[]").rstrip(".").lower() for name in host_names}
        self._digest = None if token is None else _digest(token)

    def refused(self, scope: Scope) -> JSONResponse | None:
        """Return the answer to a request that is refused, or None."""
        found: dict[bytes, list[str]] = {
            b"host": [], b"transfer-encoding": [], b"authorization": []
        }  # fmt: skip
        for name, value in scope["headers"]:
            if name in found:
                found[name].append(value.decode("latin-1"))
        hosts, codings, tokens = found.values()
        close = {"Connection": "close"}
        if len(hosts) > 1:
            return failure(400, "invalid_request", "more than one Host header", close)
        if codings and [coding.strip().lower() for coding in codings] != ["chunked"]:
            message = "accepted in Transfer-Encoding: chunked alone"
            return failure(501, "invalid_request", message, close)
        if not self._is_host(hosts, scope.get("server")):
            message = "this service does not answer to that host name"
            return failure(421, "unknown_host", message)
        if not self._is_authorized(tokens, scope["path"]):
            challenge = {"WWW-Authenticate": "Bearer"}
            return failure(401, "unauthorized", "the token is missing or wrong", challenge)
        return None

    def _is_host(self, values: list[str], server: tuple[str, int | None] | None) -> bool:
        if self._any_host:
            return True
        name = host_of(values[0]) if values else ""
        return bool(name) and (name in self._hosts or _is_address(name, server))

    def _is_authorized(self, values: list[str], path: str) -> bool:
        if self._digest is None or path in _OPEN:
            return True
        scheme, _, token = (values[0] if len(values) == 1 else "").partition(" ")
        # Digests have one length: the comparison says nothing about the token's.
        same = hmac.compare_digest(_digest(token.strip()), self._digest)
        return same and scheme.lower() == "bearer"


def _is_address(name: str, server: tuple[str, int | None] | None) -> bool:
    """Return whether a name is the address that the client connected to."""
    # An address cannot be made to mean another one, as the names of a hostile page can.
    try:
        return server is not None and ipaddress.ip_address(name) == ipaddress.ip_address(server[0])
    except ValueError:
        return False


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def failure(
    status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return the answer to a request that is not served."""
    return JSONResponse({"error": {"kind": kind, "message": message}}, status, headers)
