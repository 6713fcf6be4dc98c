"""A small run of scripts/fuzz.py: whatever comes in is accepted or a typed error."""

import subprocess
import sys
from collections import Counter

import pytest

from scripts.fuzz import running as fuzz
from scripts.fuzz.mutations import Kind

COMMAND = [sys.executable, "-m", "scripts.fuzz"]


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_nothing_crashes(kind):
    ends = Counter(fuzz.outcome(kind, 0, number) for number in range(150))
    assert set(ends) == {"accepted", "typed error"}, ends


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_seeds_are_valid_and_inputs_repeat(kind):
    inputs = fuzz.KINDS[kind]
    for content in inputs.seeds():
        if kind != "request":
            inputs.attempt(content, fuzz.make_input(kind, 0, 0)[1])
    assert (
        fuzz.make_input(kind, 3, 14)[0]
        == fuzz.make_input(kind, 3, 14)[0]
        != fuzz.make_input(kind, 3, 15)[0]
    )


def test_crashes_are_seen():
    def wrong(content, rng):
        raise ZeroDivisionError("of\na kind")

    kinds = {"image": Kind(lambda: [b"a"], lambda seeds, rng: seeds[0], wrong)}
    assert fuzz.outcome("image", 0, 0, kinds) == "ZeroDivisionError: of a kind"


# A process that dies, one that asks for too much memory, and one that says what it found.
DYING = """
import os, sys
from scripts.fuzz import running
from scripts.fuzz.mutations import Kind

def mutate(seeds, rng):
    seed, _, number = rng.bit_generator.seed_seq.entropy
    return b"%d" % (number if seed == 0 else 0)

def attempt(content, rng):
    n = int(content)
    if n == 2:
        os.kill(os.getpid(), 11)
    if n == 4:
        bytearray(1 << 33)

kinds = {"image": Kind(lambda: [b""], mutate, attempt)}
sys.exit(running.main(kinds, [sys.executable, __file__]))
"""


def test_a_process_that_dies_is_a_crash_and_the_rest_is_tried(tmp_path, monkeypatch):
    script = tmp_path / "dying.py"
    script.write_text(DYING)
    monkeypatch.setenv("PYTHONPATH", str(fuzz.ROOT))
    command = [sys.executable, str(script), "--inputs", "6", "--seed", "0", "--kind", "image"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 1, said
    lines = said.stdout.splitlines()
    assert lines[1].split() == ["image", "6", "0", "4", "2"]
    assert "2 the process died (exit code -11)" in lines[2]
    assert "4 MemoryError" in lines[3]


def test_the_table_says_how_many(capsys):
    command = [*COMMAND, "--inputs", "20", "--seed", "5", "--kind", "image"]
    said = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=fuzz.ROOT
    ).stdout.splitlines()
    assert said[0].split() == ["kind", "tried", "typed", "error", "accepted", "crashed"]
    kind, tried, typed, accepted, crashed = said[1].split()
    assert (kind, int(tried), int(crashed)) == ("image", 20, 0)
    assert int(typed) + int(accepted) == 20
