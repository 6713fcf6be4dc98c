"""Text that people and spreadsheets read: any name of a file on one line, in any encoding."""

from __future__ import annotations

import codecs
import io
import sys
from contextlib import suppress
from typing import Any

import typer

from visionshare.errors.names import without_controls

_HANDLER = "visionshare-names"
# What spreadsheets take for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _encode(error: UnicodeError) -> tuple[str | bytes, int]:
    """Encode bytes of file names as they are, and other characters as escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    made = b""
    for character in error.object[error.start : error.end]:
        code = ord(character)
        if 0xDC80 <= code <= 0xDCFF:
            made += bytes([code - 0xDC00])
        else:
            made += character.encode("ascii", "backslashreplace")
    return made, error.end


codecs.register_error(_HANDLER, _encode)


def accept_every_name() -> None:
    """Let the standard streams take every name of a file, whatever their encoding."""
    # Bytes of file names that are no text come in and go out as they are; other characters that
    # an ASCII locale lacks become escapes such as ``\xd7``.
    streams = (sys.stdin, sys.stdout, sys.stderr)
    handlers = ("surrogateescape", _HANDLER, _HANDLER)
    for stream, errors in zip(streams, handlers, strict=True):
        if isinstance(stream, io.TextIOWrapper):
            # A stream that was read from already keeps what it has.
            with suppress(io.UnsupportedOperation):
                stream.reconfigure(errors=errors)


def say(text: object, err: bool = False, nl: bool = True) -> None:
    """Write a text on standard output, or on standard error."""
    # With control characters as escapes.
    typer.echo(without_controls(str(text)), err=err, nl=nl)


def one_line(text: str) -> str:
    """Return a text without control characters: white space as spaces, others as escapes."""
    return portable(" ".join(text.split()))


def portable(name: str) -> str:
    """Return a name with its control characters as escapes, so that it is one field of a line."""
    if name.isprintable():
        return name
    escaped = ""
    for character in name:
        code = ord(character)
        is_control = code < 32 or 127 <= code < 160 or character in "\u2028\u2029"
        escaped += character.encode("unicode_escape").decode() if is_control else character
    return escaped


def cell(value: Any) -> str:
    """Return a value as a cell of a CSV file that no spreadsheet takes for a formula."""
    # A text that begins as formulas do gets an apostrophe before it, as spreadsheets write such
    # text; numbers and single characters stay as they are. Control characters become escapes.
    text = without_controls(str(value))
    if len(text) < 2 or not text.startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
