"""Several processes and threads in one folder or one file at the same time."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scripts.attack.classifiers import small_model
from scripts.attack.commands import COMMANDS, contents, fresh
from scripts.attack.forked import Attempt, forked, said
from scripts.attack.results import Ending
from scripts.attack.serving import Served
from scripts.attack.shim import Outcome, Runner
from visionshare.errors import StoreError

__all__ = ["concurrency"]

_COMMANDS = ("train", "extract", "predict")
_ORDER = ("train", "threads", "extract", "stores", "predict", "service")
_LATEST = 0.3
_THREADS = 4
_LOADS = 15


def concurrency(tries: range, seed: int) -> Iterator[Ending]:
    """Run what shares a folder or a file at the same time: each right, or refused in one line."""
    with Runner() as runner, tempfile.TemporaryDirectory() as made:
        together = _Together(runner, Path(made))
        inner = {
            name: forked(partial(ready, seed), [n for n in tries if _part(n) == name])
            for name, ready in _READY.items()
        }
        for number in tries:
            name = _part(number)
            ending = next(inner[name]) if name in inner else together.tried(name, seed, number)
            yield ending._replace(part=name)
        for endings in inner.values():
            endings.close()


def _part(number: int) -> str:
    return _ORDER[number % len(_ORDER)]


class _Together:
    """Two or three of the same command in the same folder, beginning at almost the same time."""

    def __init__(self, runner: Runner, folder: Path) -> None:
        self._runner = runner
        self._folder = folder
        self._inputs: dict[str, Path] = {}
        self._expected: dict[str, dict[str, str]] = {}
        for name in _COMMANDS:
            command = COMMANDS[name]
            runner.warm(command.argv(fresh(command, folder, self._inputs, name)))
            target = fresh(command, folder, self._inputs, name)
            whole = runner.run(command.argv(target), target)
            if whole.status != 0:
                raise RuntimeError(f"{name} fails alone: {whole.output}")
            self._expected[name] = contents(target)

    def tried(self, name: str, seed: int, number: int) -> Ending:
        """Return how a try ended."""
        rng = np.random.default_rng((seed, number))
        command = COMMANDS[name]
        target = fresh(command, self._folder, self._inputs, name)
        n = int(rng.integers(2, 4))
        delays = (rng.random(n) * _LATEST * rng.choice([0.0, 0.1, 1.0])).tolist()
        ended = self._runner.run_together([command.argv(target)] * n, delays)
        for one in ended:
            if problem := _problem(one):
                return Ending("crashed", problem)
        if all(one.status for one in ended):
            return Ending("lost", f"all are refused: {ended[0].output.strip().splitlines()[-1]}")
        expected = self._expected[name]
        try:
            left = contents(target)
        except Exception as error:
            return Ending("lost", f"breaks what looks at it: {said(error)}")
        if more := sorted(set(left) - set(expected)):
            return Ending("lost", f"files left over: {more[:3]}")
        differ = sorted(file for file in expected if left.get(file) != expected[file])
        return Ending("silent", f"different: {differ[:3]}") if differ else Ending("survived")


def _problem(ended: Outcome) -> str:
    """Return what is wrong with how a command ended."""
    lines = ended.output.strip().splitlines()
    if ended.status not in (0, 2):
        return f"ended with {ended.status}: {lines[-1] if lines else 'no message'}"
    if ended.status and (len(lines) != 1 or "--debug" in ended.output):
        return f"no error of one line: {lines[-1] if lines else 'no message'}"
    return ""


def _threads_ready(seed: int) -> Attempt:
    """Return a try: threads load and use a classifier that others replace."""
    from visionshare import load

    images = _images(seed)
    models = _models(images)
    answers = [model.predict_proba(images).tobytes() for model in models]
    path = Path(tempfile.mkdtemp()) / "a.safetensors"

    def attempt(number: int) -> Ending:
        draws = np.random.default_rng((seed, number))
        models[0].save(path)
        stop = threading.Event()
        orders = draws.integers(0, len(models), (2, 1000))

        def replace(order: np.ndarray) -> None:
            for i in order:
                if stop.is_set():
                    return
                models[i].save(path)

        def use() -> int:
            given = (load(path).predict_proba(images).tobytes() for _ in range(_LOADS))
            return sum(answer not in answers for answer in given)

        with ThreadPoolExecutor(_THREADS + 2) as pool:
            writers = [pool.submit(replace, order) for order in orders]
            try:
                wrong = sum(task.result() for task in [pool.submit(use) for _ in range(_THREADS)])
            finally:
                stop.set()
            for writer in writers:
                writer.result()
        if left := sorted(p.name for p in path.parent.iterdir() if p != path):
            return Ending("lost", f"files left over: {left[:3]}")
        return Ending("silent", f"{wrong} other answers") if wrong else Ending("survived")

    return attempt


def _images(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (60, 8, 8), np.uint8)


def _models(images: np.ndarray) -> list[Any]:
    """Return classifiers that answer differently."""
    from visionshare import PatchTemplates

    family = PatchTemplates(3, 6, 2, (2.0,), n_patches=200).fit(images).take(np.arange(6))
    return [small_model(family, number) for number in range(4)]


def _service_ready(seed: int) -> Attempt:
    """Return a try: threads ask the service, whose classifier is replaced meanwhile."""
    models = _models(_images(seed))
    path = Path(tempfile.mkdtemp()) / "a.safetensors"
    answers = set()
    for model in models:
        model.save(path)
        answers.add(Served(path).once())
    served = Served(path, "--jobs", "2")

    def attempt(number: int) -> Ending:
        draws = np.random.default_rng((seed, number))

        def ask() -> int:
            return sum(served.predict() not in answers for _ in range(_LOADS))

        with ThreadPoolExecutor(_THREADS) as pool:
            asked = [pool.submit(ask) for _ in range(_THREADS)]
            for i in draws.integers(0, len(models), 10):
                models[i].save(path)
                served.process.send_signal(signal.SIGHUP)
            wrong = sum(task.result() for task in asked)
        served.check()
        return Ending("silent", f"{wrong} other answers") if wrong else Ending("survived")

    return attempt


def _stores_ready(seed: int) -> Attempt:
    """Return a try: a process writes a store, another tries to, and this one reads."""
    from visionshare import Pixels
    from visionshare.store import create_store, open_store, verify_store

    images = np.random.default_rng(seed).integers(0, 256, (50, 6, 6), np.uint8)
    family = Pixels().fit(images)
    true = family.transform_columns(images, dtype="float16").astype(np.float32)

    def write(folder: Path, order: np.ndarray) -> None:
        for ids in np.array_split(order, 9):
            try:
                create_store(folder, family, images).fill(ids)
            except StoreError as error:
                if "another process writes" not in str(error):
                    raise

    def attempt(number: int) -> Ending:
        draws = np.random.default_rng((seed, number))
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made) / "a.store"
            create_store(folder, family, images)
            children = [_child(partial(write, folder, draws.permutation(36))) for _ in range(2)]
            wrong = 0
            while children:
                wrong += _read_wrong(folder, true)
                children = [child for child in children if not _has_ended(child)]
            create_store(folder, family, images).fill()
            wrong += not np.array_equal(open_store(folder).columns_of(scaled=False), true)
            if problems := verify_store(folder):
                return Ending("lost", str(problems))
        return Ending("silent", f"{wrong} other columns") if wrong else Ending("survived")

    return attempt


def _read_wrong(folder: Path, true: np.ndarray) -> int:
    from visionshare.store import open_store

    reader = open_store(folder)
    ids = np.setdiff1d(np.arange(len(true)), reader.missing)
    return int(not np.array_equal(reader.columns_of(ids, scaled=False), true[ids]))


def _child(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return child


def _has_ended(child: int) -> bool:
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended and status:
        raise RuntimeError(f"a writer ended with {os.waitstatus_to_exitcode(status)}")
    return bool(ended)


_READY = {"threads": _threads_ready, "stores": _stores_ready, "service": _service_ready}
