"""The commands that are attacked: what they need, how they are called, what must be left."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

__all__ = ["COMMANDS", "Command", "call", "contents", "fresh"]

# Values that no two runs share: seconds, memory, and where a run lay.
_VARYING = ("seconds", "processor_seconds", "peak_memory")


@dataclass(frozen=True)
class Command:
    """A command and what it works on.

    Attributes
    ----------
    prepare : callable
        Makes what the command needs in a folder that is empty.
    argv : callable
        Returns the arguments of :func:`call` for that folder.
    again : callable
        Returns the arguments that let it resume.
    """

    prepare: Callable[[Path], None]
    argv: Callable[[Path], list[str]]
    again: Callable[[Path], list[str]]


def contents(folder: Path) -> dict[str, str]:
    """Return a digest of what each file below a folder holds, without what varies by nature."""
    digests = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = str(path.relative_to(folder))
            digests[name] = hashlib.sha256(_constant(path)).hexdigest()
    return digests


def _constant(path: Path) -> bytes:
    """Return the bytes of a file that are the same in every run."""
    if path.name == "classifier.safetensors":
        import visionshare

        classifier = visionshare.load(path)
        state, arrays = classifier.family.to_state()
        parts = [json.dumps(state), str(classifier.temperature), repr(classifier.classes_)]
        parts += [repr((s.round, s.feature, s.loss, s.train_error)) for s in classifier.path]
        whole = [classifier.weights, classifier.intercept, *arrays.values()]
        whole += [step.weights for step in classifier.path]
        return "\n".join(parts).encode() + b"".join(array.tobytes() for array in whole)
    if path.name == "metrics.json":
        values = json.loads(path.read_text())
        return json.dumps({k: v for k, v in values.items() if k not in _VARYING}).encode()
    if path.name == "manifest.json":
        values = json.loads(path.read_text())
        for shard in values["shards"].values():
            shard.pop("mtime_ns", None)
        return json.dumps(values).encode()
    if path.name == "path.csv":
        rows = [row.split(",") for row in path.read_text().splitlines()]
        drop = rows[0].index("seconds")
        return json.dumps([row[:drop] + row[drop + 1 :] for row in rows]).encode()
    # Reports show seconds.
    return b"" if path.suffix == ".html" else path.read_bytes()


def call(argv: Sequence[str]) -> int:
    """Run the command line, or the function of a name in CALLS; return the exit code."""
    from visionshare.cli.main import main
    from visionshare.errors import VisionshareError

    if argv[0] not in CALLS:
        return main(list(argv))
    try:
        CALLS[argv[0]](Path(argv[1]))
    except VisionshareError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


_SMALL = (
    'data.classes=["0", "1"]',
    "data.limit=60",
    "features.pool=pixels",
    "store.where=disk",
)


def _train(folder: Path) -> list[str]:
    argv = ["train", "digits", "--out", str(folder / "run"), "--rounds", "3", "--jobs", "1"]
    return [*argv, *(word for text in _SMALL for word in ("--set", text))]


def _save(folder: Path) -> None:
    """Replace a classifier by another one."""
    import visionshare

    model = visionshare.load(folder / "small.safetensors")
    replace(model, temperature=2.0).save(folder / "small.safetensors")


CALLS: dict[str, Callable[[Path], None]] = {"save": _save}


def _classifier(folder: Path) -> Path:
    """Return a small classifier, trained once and copied after that."""
    from visionshare import CompactClassifier, Pixels

    rng = np.random.default_rng(0)
    family = Pixels().fit(np.zeros((1, 8, 8))).take(np.arange(9))
    weights = rng.normal(size=(3, 9)).astype(np.float32)
    path = folder / "small.safetensors"
    CompactClassifier(family, weights, np.zeros(3, np.float32), np.array(["a", "b", "c"])).save(
        path
    )
    return path


def _pictures(folder: Path) -> None:
    import cv2

    rng = np.random.default_rng(1)
    (folder / "pictures").mkdir()
    for number in range(12):
        picture = rng.integers(0, 256, (8, 8), np.uint8)
        cv2.imwrite(str(folder / "pictures" / f"{number:02d}.png"), picture)
    _classifier(folder)


def _extract(folder: Path) -> list[str]:
    source = [str(folder / "small.safetensors"), str(folder / "pictures")]
    return ["extract", *source, "--out", str(folder / "features.store"), "--jobs", "1"]


def _predict(folder: Path) -> list[str]:
    source = [str(folder / "small.safetensors"), str(folder / "pictures")]
    return ["predict", *source, "--out", str(folder / "labels.csv"), "--jobs", "1"]


def _broken_store(folder: Path) -> None:
    from visionshare import Pixels
    from visionshare.store import create_store

    images = np.random.default_rng(2).integers(0, 256, (30, 6, 6), np.uint8)
    family = Pixels().fit(images)
    columns = create_store(folder / "a.store", family, images)
    for start in range(0, 36, 12):
        columns.fill(np.arange(start, start + 12))
    shards = sorted((folder / "a.store" / "shards").iterdir())
    content = bytearray(shards[0].read_bytes())
    content[len(content) // 2] ^= 255
    shards[0].write_bytes(content)
    (folder / "a.store" / "shards" / ".00099.h5.1.partial").write_bytes(b"left over")


def _repair(folder: Path) -> list[str]:
    return ["store", "repair", str(folder / "a.store")]


def _export(target: str) -> Callable[[Path], list[str]]:
    def argv(folder: Path) -> list[str]:
        source = str(folder / "small.safetensors")
        return ["export", source, "--to", target, "--out", str(folder / "exported")]

    return argv


def _saved(folder: Path) -> list[str]:
    return ["save", str(folder)]


def _nothing(folder: Path) -> None:
    return


def _one_classifier(folder: Path) -> None:
    _classifier(folder)


COMMANDS: dict[str, Command] = {
    "train": Command(_nothing, _train, lambda folder: [*_train(folder), "--resume"]),
    "extract": Command(_pictures, _extract, _extract),
    "predict": Command(_pictures, _predict, _predict),
    "repair": Command(_broken_store, _repair, _repair),
    "save": Command(_one_classifier, _saved, _saved),
    "export-c": Command(_one_classifier, _export("c"), _export("c")),
    "export-onnx": Command(_one_classifier, _export("onnx"), _export("onnx")),
}


def fresh(command: Command, folder: Path, made: dict[str, Path], name: str) -> Path:
    """Return an empty folder with what a command needs, copied from one that was made once."""
    if name not in made:
        made[name] = folder / f"{name}-inputs"
        made[name].mkdir(parents=True)
        command.prepare(made[name])
    target = folder / "attacked"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(made[name], target)
    return target
