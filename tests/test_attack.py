"""The short form of the attacks: ``python -m scripts.attack`` has the long one."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from scripts.attack.campaign import run_campaign, table
from scripts.attack.hostile import Hostile
from scripts.attack.kinds import KINDS
from scripts.attack.results import Ending, Result

ROOT = Path(__file__).parents[1]


def attack(*arguments):
    """Run a campaign in a process of its own: it forks, which does not go with threads."""
    command = [sys.executable, "-m", "scripts.attack", *map(str, arguments), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ended.stdout, ended.stderr
    return ended, json.loads(ended.stdout.splitlines()[-1])


def test_counts_add_up():
    result = Result()
    result.add(Ending("survived", part="store", point=2, points=3))
    assert not result.failed
    result.add(Ending("silent", "a.h5: other values", "store"))
    assert result.failed
    assert result.counts() == {"tries": 2, "survived": 1, "lost": 0, "silent": 1, "crashed": 0}
    assert Result.from_values(json.loads(json.dumps(result.to_values()))) == result


def test_a_campaign_goes_on_where_it_was_stopped(tmp_path):
    made = []

    def tried(tries, seed):
        for number in tries:
            made.append((seed, number))
            if len(made) == 4:
                raise KeyboardInterrupt
            yield Ending("survived", part="all", point=number + 1, points=9)

    out, lines = tmp_path / "counts.json", []
    with pytest.raises(KeyboardInterrupt):
        run_campaign({"kills": tried}, 9, 5, out, lines.append)
    results = run_campaign({"kills": tried}, 9, 5, out, lines.append)
    assert results["kills"].counts()["tries"] == 9
    # The try that was broken off is made again.
    assert made == [(5, number) for number in (0, 1, 2, 3, 3, 4, 5, 6, 7, 8)]
    assert "9 of 9" in table(results)
    run_campaign({"kills": tried}, 9, 5, out, lines.append)
    assert len(made) == 10
    with pytest.raises(ValueError, match="seed 5"):
        run_campaign({"kills": tried}, 9, 6, out, lines.append)


def endings_of(attacked, *imports):
    """Return how the tries of an expression ended, made by a process of its own."""
    lines = [*imports, f"for ending in {attacked}:", "    print(*ending[:3], sep=';')"]
    command = [sys.executable, "-c", "\n".join(lines)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    return [line.split(";", 2) for line in ended.stdout.splitlines()]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_commands_survive():
    """Kills and full disks by turns: what commands need is made once for both."""
    modes = ("kill", "full", "torn", "fail")
    endings = endings_of(
        f"Operations({modes})(range(12), 0)", "from scripts.attack.operations import Operations"
    )
    assert len(endings) == 12
    assert [ending for ending in endings if ending[0] != "survived"] == []


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("kind", ["kills", "full-disk"])
def test_a_campaign_on_commands_survives(kind):
    ended, counts = attack("--kinds", kind, "--n", 6)
    assert counts[kind]["survived"] == counts[kind]["tries"] == 6, ended.stderr
    assert ended.returncode == 0


def test_damaged_files_are_found():
    ended, counts = attack("--kinds", "flips", "--n", 80, "--seed", 1)
    assert counts["flips"]["survived"] == 80, ended.stderr
    assert ended.returncode == 0
    formats = {"classifier", "store", "checkpoint", "catalog", "family", "parts", "extraction"}
    assert formats <= {line.split()[0] for line in ended.stdout.splitlines() if line}


HOSTILE = {name: kind for name, kind in KINDS.items() if isinstance(kind, Hostile)}
SORTS = [(name, number) for name, kind in HOSTILE.items() for number in range(len(kind.sorts))]


def test_hostile_inputs_of_every_sort_are_refused():
    """One process attacks all sorts by turns: each kind has one that imports all again."""
    n = 16 * len(SORTS)
    sorts = "{s: i for k in KINDS.values() if isinstance(k, Hostile) for s, i in k.sorts.items()}"
    endings = endings_of(
        f"Hostile({sorts})(range({n}), 1)",
        "from scripts.attack.hostile import Hostile",
        "from scripts.attack.kinds import KINDS",
    )
    assert [ending for ending in endings if ending[0] != "survived"] == []
    parts = {name: 16 for kind in HOSTILE.values() for name in kind.sorts}
    assert Counter(ending[2] for ending in endings) == parts


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_inputs_are_refused(name):
    # Some of each sort are enough here.
    n = 40
    ended, counts = attack("--kinds", name, "--n", n, "--seed", 1)
    assert counts[name]["survived"] == n, ended.stderr
    assert ended.returncode == 0


@pytest.mark.parametrize(("name", "first"), SORTS)
def test_inputs_repeat(name, first):
    kind = HOSTILE[name]
    n = len(kind.sorts)
    inputs = [kind.make(3, first + n * number)[0] for number in (14, 14, 15)]
    assert inputs[0] == inputs[1] != inputs[2]


@pytest.mark.parametrize("name", ["headers", "images", "pages"])
def test_what_is_changed_was_valid(name):
    for inputs in HOSTILE[name].sorts.values():
        seeds = list(inputs.seeds())
        assert seeds
        # An attempt raises what the library does.
        for content in seeds:
            inputs.attempt(content, np.random.default_rng(0))


# A process that dies, one that asks for too much memory, hangs, and errors of other kinds.
DYING = """
import os, sys, time
from scripts.attack.forked import forked
from scripts.attack.results import Ending
from visionshare.errors import DataError

def attempt(n):
    if n == 2:
        os.kill(os.getpid(), 11)
    if n == 4:
        bytearray(1 << 33)
    if n == 5:
        time.sleep(60)
    if n == 6:
        raise DataError("one line")
    if n == 7:
        raise DataError("two\\nlines")
    if n == 8:
        try:
            raise MemoryError
        except MemoryError:
            raise DataError("too large") from None
    return Ending("survived")

for ending in forked(lambda: attempt, range(10), seconds=2):
    print(ending.ended, ending.fault)
"""


def test_tries_that_die_hang_or_take_too_much_are_seen():
    command = [sys.executable, "-c", DYING]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    lines = ended.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [
        "crashed" if n in (2, 4, 5, 7, 8) else "survived" for n in range(10)
    ]
    assert "the process ended with -11" in lines[2]
    assert "MemoryError" in lines[4]
    assert "TooSlow" in lines[5]
    assert "several lines" in lines[7]
    assert "asked for more" in lines[8]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize(
    ("kind", "n"),
    [
        ("slow-clients", 9),
        pytest.param("concurrency", 6, marks=pytest.mark.exhaustive),
    ],
)
def test_those_who_come_at_the_same_time_are_answered(kind, n):
    ended, counts = attack("--kinds", kind, "--n", n, "--seed", 1)
    assert counts[kind]["survived"] == n, ended.stderr
    assert ended.returncode == 0


# A decoder that is deliberately slow, beside one that is not; and one that takes more for more.
SLOW = """
import time
from scripts.attack.costs import Costly
from scripts.attack.times import Timed

def busy(seconds):
    stop = time.process_time() + seconds
    while time.process_time() < stop:
        pass

def use(content):
    busy(len(content) / 1e6)
    return 0

def several(content):
    busy(0.3)
    return 2000

builders = {"long": lambda size, rng: bytes(size)}
sorts = {
    "slow": Costly(builders, lambda: [], use),
    "quick": Costly(builders, lambda: [], lambda content: 0),
    "of pictures": Costly(builders, lambda: [], several),
    "waiting": Costly(builders, lambda: [], lambda content: time.sleep(0.3) or 0),
}
for ending in Timed(sorts, limit=0.2, size=400_000)(range(4), 0):
    print(ending.part, ending.ended, round(ending.seconds, 1), ending.fault, sep=";")
"""


def test_the_kind_of_time_notices_a_slow_decoder():
    command = [sys.executable, "-c", SLOW]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    slow, quick, pictures, waiting = (line.split(";") for line in ended.stdout.splitlines())
    assert slow[:2] == ["slow", "crashed"]
    assert "CPU seconds: long, 400000 bytes" in slow[3]
    assert float(slow[2]) >= 0.4
    assert quick[:3] == ["quick", "survived", "0.0"]
    # Two thousand pictures may take 0.4 seconds more; and who waits takes no CPU.
    assert pictures[:2] == ["of pictures", "survived"]
    assert waiting[:2] == ["waiting", "survived"]


# Of every format, some inputs that are smaller than those of a campaign.
SHORT = """
from scripts.attack.costs import COSTS
from scripts.attack.times import Timed

for ending in Timed(COSTS, size=1 << 20)(range(60), 1):
    print(ending.part, ending.ended, ending.fault, sep=";")
"""


def test_expensive_inputs_are_read_or_refused_in_time():
    pytest.importorskip("pyarrow")
    command = [sys.executable, "-c", SHORT]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    endings = [line.split(";", 2) for line in ended.stdout.splitlines()]
    assert len(endings) == 60
    assert [ending for ending in endings if ending[1] != "survived"] == []
    assert {"HDF5", "picture header", "HTTP body"} <= {ending[0] for ending in endings}
