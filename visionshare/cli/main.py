"""The command line's entry: errors of one line, exit codes, output of any encoding."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from visionshare.errors import VisionshareError

_ERROR = 2
_INTERRUPTED = 130
_TERMINATED = 143


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Look for unreachable cycles less often."""
    # What imports make stays, and is made by the 100 000. It saves a sixth of the time of a
    # prediction of one picture.
    before = gc.get_threshold()
    gc.set_threshold(150_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def command() -> int:
    """Run the command line as all that its process does; return its exit code."""
    try:
        code = main()
        # All is done: Ctrl-C ends the process now, without a traceback of what Python tidies.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        # It came between the last line of a command and this one.
        code = _stopped(sys.argv[1:], [])
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # The interpreter ends with a search for cycles in all that was imported: a tenth of a second.
    gc.freeze()
    return code


@_rare_collections()
def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    # Errors that the library raises on purpose are one line on standard error and exit code 2;
    # ``--debug`` shows their traceback; ``--quiet`` shows no progress. Ctrl-C and SIGTERM end it
    # in order, with exit codes 130 and 143.
    arguments = sys.argv[1:] if arguments is None else arguments
    with _interrupts_end_it():
        import typer

        from visionshare.cli.application import app
        from visionshare.cli.commands import Switches
        from visionshare.cli.text import accept_every_name
    accept_every_name()
    switches = Switches()
    # Signals that ended the command.
    ended: list[int] = []
    try:
        with _terminations_interrupt(ended, arguments), _notices_told():
            result = app(arguments, "visionshare", standalone_mode=False, obj=switches)
        code = result if isinstance(result, int) else 0
        # Some versions of typer return this code after an interrupt.
        return _stopped(arguments, ended) if code == _INTERRUPTED else code
    except (KeyboardInterrupt, typer.Abort):
        return _stopped(arguments, ended)
    except BrokenPipeError:
        return _cut_off()
    except Exception as error:
        # What typer raises for wrong options has a message of its own.
        if hasattr(error, "format_message"):
            return _failed(_usage(error, arguments))
        if switches.debug:
            raise
        if isinstance(error, VisionshareError):
            return _failed(str(error))
        return _failed(f"{type(error).__name__}: {error} (--debug shows where)")


def _failed(message: str) -> int:
    """Write an error on standard error, in one line."""
    from visionshare.cli.text import one_line, say

    say(f"error: {one_line(message)}", err=True)
    return _ERROR


def _usage(error: Any, arguments: list[str]) -> str:
    """Return what is wrong with the options, and where their help is."""
    message = str(error.format_message())
    names: Sequence[str] = getattr(getattr(error, "param", None), "opts", ())
    given = _value_of(names, arguments)
    if message.startswith("Invalid value") and given is not None:
        if "integer" in message:
            message = f"{names[0]}: got {given!r}; accepted: a whole number."
        elif "number" in message or "float" in message:
            message = f"{names[0]}: got {given!r}; accepted: a number."
        elif "greater than or equal to" in message:
            message = f"{names[0]}: got {given!r}; accepted: {message.split()[-1]} or more."
    context = getattr(error, "ctx", None)
    return message if context is None else f"{message} Help: {context.command_path} -h"


def _value_of(names: Sequence[str], arguments: list[str]) -> str | None:
    """Return the text that follows an option; None where it is not there."""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, equals, value = argument.partition("=")
        if name in names:
            return value if equals else following
    return None


def _cut_off() -> int:
    """Return the exit code where the reader of the output has gone: head has seen enough."""
    # What is left in the buffer has no place to go to, and would raise once more at the end.
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    return 1


def _command_of(arguments: list[str]) -> str:
    """Return the name of the command; options before it take no values."""
    return next((text for text in arguments if not text.startswith("-")), "")


@contextmanager
def _notices_told() -> Iterator[None]:
    """Say at the end what was left out while pictures were read."""
    import typer

    from visionshare.cli.text import portable
    from visionshare.datasets.notices import collect_notices

    with collect_notices() as notices:
        try:
            yield
        finally:
            for sentence in notices.sentences():
                typer.echo(f"note: {portable(sentence)}", err=True)


def _stopped(arguments: list[str], ended: list[int]) -> int:
    hint = ""
    if _command_of(arguments) == "train":
        hint = "; the same command with --resume resumes it"
    sys.stderr.write(f"stopped{hint}\n")
    return _TERMINATED if ended else _INTERRUPTED


@contextmanager
def _terminations_interrupt(ended: list[int], arguments: list[str]) -> Iterator[None]:
    """Interrupt a block at SIGTERM as Ctrl-C does, so that it tidies up; note the signal."""
    # A service ends in order itself.
    is_free = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    is_main = threading.current_thread() is threading.main_thread()
    if not is_free or not is_main or _command_of(arguments) == "serve":
        yield
        return

    def interrupt(number: int, _: object) -> None:
        ended.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def _interrupts_end_it() -> Iterator[None]:
    """End the process in one line at Ctrl-C while a block imports: nothing has begun."""
    # An exception would not do: some modules turn it into an error of their own when it comes
    # while they are imported.
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: Any) -> None:
        os.write(2, b"stopped\n")
        os._exit(_INTERRUPTED)

    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
