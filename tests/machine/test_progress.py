"""Progress is shown where it is asked for, as a bar or as lines, and nowhere else."""

import io
import time

import pytest

from visionshare.machine.progress import Progress, shown, stage, track


class Clock:
    """Seconds that a test moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    """A file that says that it is a terminal."""

    def isatty(self):
        return True


def test_nothing_is_shown_where_nobody_asked(capsys):
    with stage("reading", 2) as advance:
        advance(1)
    assert list(track(range(3), "counting")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


def test_lines_come_every_few_seconds_with_the_time_that_is_left():
    clock, file = Clock(), io.StringIO()
    with Progress(file, every=5, clock=clock):
        for _ in track(range(100), "reading"):
            clock.now += 1
    lines = file.getvalue().splitlines()
    assert lines[0] == "reading, 5 % (5/100), 5 s, about 1 min 35 s left"
    assert lines[-1] == "reading, 100 % (100/100), 1 min 40 s, about 0 s left"
    assert len(lines) == 20


def test_what_is_quick_says_nothing():
    clock, file = Clock(), io.StringIO()
    with Progress(file, every=5, clock=clock):
        for _ in track(range(100), "reading"):
            clock.now += 0.04
    assert file.getvalue() == ""


def test_a_resumed_loop_tells_the_time_of_its_own_steps():
    clock, file = Clock(), io.StringIO()
    with Progress(file, every=10, clock=clock), stage("rounds", 100, begun=90) as advance:
        clock.now = 10
        advance(5)
    assert file.getvalue() == "rounds, 95 % (95/100), 10 s, about 10 s left\n"


def test_what_is_told_is_how_far_the_outermost_counted_task_is():
    clock, file = Clock(), io.StringIO()
    with Progress(file, every=1, clock=clock), stage("learning"):
        with stage("epochs", 4) as epoch:
            clock.now = 2
            epoch(1)
            with stage("deforming", 100) as advance:
                clock.now = 4
                advance(50)
        with stage("learning") as advance:
            clock.now = 7
            advance(3)
    assert file.getvalue().splitlines() == [
        "learning: epochs, 25 % (1/4), 2 s, about 6 s left",
        "learning: epochs: deforming, 25 % (1/4), 4 s, about 12 s left",
        "learning, 3, 3 s",
    ]


def test_what_does_not_count_is_told_of_by_the_clock():
    file = io.StringIO()
    with Progress(file, every=0.01), stage("compiling"):
        limit = time.monotonic() + 10
        while not file.getvalue() and time.monotonic() < limit:
            time.sleep(0.005)
    assert file.getvalue().startswith("compiling, 0 s\n")


def test_a_terminal_gets_a_bar_that_goes():
    file = Terminal()
    with Progress(file):
        for _ in track(range(3), "reading"):
            list(track(range(2), "decoding"))
        with stage("clustering"):
            pass
    shown_text = file.getvalue()
    assert "reading" in shown_text
    assert "|" in shown_text
    assert "reading: decoding" in shown_text
    assert "clustering [" in shown_text
    assert "\n" not in shown_text


def test_who_asks_inside_of_a_progress_gets_no_second_one(capsys):
    file = io.StringIO()
    with Progress(file), shown(True) as inner:
        assert inner is None
    with shown(True) as own:
        assert isinstance(own, Progress)
    assert capsys.readouterr().err == ""


def test_an_error_ends_the_task():
    clock, file = Clock(), io.StringIO()
    with Progress(file, every=1, clock=clock):
        with pytest.raises(KeyError), stage("reading", 3):
            raise KeyError
        with stage("writing", 2) as advance:
            clock.now = 3
            advance(1)
    assert file.getvalue() == "writing, 50 % (1/2), 3 s, about 3 s left\n"
