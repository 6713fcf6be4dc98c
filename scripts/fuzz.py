"""Broken and malicious inputs by the thousand: each must be accepted or be a typed error.

    python scripts/fuzz.py --inputs 20000 --seed 0                  # of every kind
    python scripts/fuzz.py --kind image --only 1234 --save found.png    # one of them, again

Valid inputs are mutated; input number i of a kind and a seed is always the same. They are tried in
a process of bounded memory, which is started anew when it dies. A kind is an entry of KINDS.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.errors import VisionshareError

_SECONDS = 20
_MEMORY = 1 << 30
_LARGEST_IMAGE = 1 << 20
_SHOWN = 10


@dataclass(frozen=True)
class Kind:
    """A kind of input.

    Attributes
    ----------
    seeds : callable
        Returns valid inputs.
    mutate : callable
        Returns an input made from these, with a generator.
    attempt : callable
        Uses an input as the library would; raises what the library raises.
    """

    seeds: Callable[[], list[bytes]]
    mutate: Callable[[list[bytes], np.random.Generator], bytes]
    attempt: Callable[[bytes, np.random.Generator], None]


# --- bytes -----------------------------------------------------------------------------------

NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 100_000)


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes with one to four faults of any kind."""
    held = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        place = int(rng.integers(0, len(held) + 1))
        some = int(rng.integers(1, 9))
        fault = rng.integers(0, 7)
        if fault == 0:
            del held[place:]
        elif fault == 1:
            held[place : place + some] = rng.bytes(some)
        elif fault == 2:
            held[place:place] = rng.bytes(some)
        elif fault == 3:
            del held[place : place + some]
        elif fault == 4:
            size, order = int(rng.choice([1, 2, 4])), ("little", "big")[rng.integers(0, 2)]
            value = int(rng.choice(NUMBERS)) & (256**size - 1)
            held[place : place + size] = value.to_bytes(size, order)
        elif fault == 5:
            length = int(rng.integers(1, 65))
            other = int(rng.integers(0, len(held) + 1))
            held[place:place] = held[other : other + length]
        elif place < len(held):
            held[place] ^= 1 << int(rng.integers(0, 8))
    return bytes(held)


# --- classifier files ------------------------------------------------------------------------


@cache
def classifier_seeds() -> list[bytes]:
    """Return a small classifier file of every family, some with rules and preparation."""
    from visionshare.classifier import ExitRule
    from visionshare.datasets import Preprocessing, load_dataset

    images = load_dataset("digits", "train").images[:60]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number, family in enumerate(_families(images)):
            model = _model(family, number)
            if number % 2:
                model = model.with_exit_rule(ExitRule((1, 2), (0.5, 0.5)))
            if number % 3 == 0:
                steps = Preprocessing("automatic", True, True, fit="box", margin=1, centre="mass")
                model = model.with_preprocessing(steps)
            path = Path(folder) / "a.safetensors"
            model.save(path)
            found.append(path.read_bytes())
    return found


def _families(images: np.ndarray) -> Iterator[Any]:
    import visionshare as vs

    made = [
        vs.PatchTemplates(3, 6, 2, (2.0,), n_patches=200),
        vs.Pixels(),
        vs.GaborBank(6),
        vs.GaborBank(6, sigmas=(0.5, 1.0), border="inside", pooling="max"),
        vs.RandomFourier(6, bandwidths=(4.0,)),
        vs.KernelAnchors(n_anchors=3, n_radii=2),
        vs.KernelAnchors("gaussian", n_anchors=4, n_radii=2, n_components=3),
        vs.Stumps(2),
        vs.Products(),
        vs.Monomials(vs.RandomFourier(4, bandwidths=(6.0,)), [(0,), (1, 1), (2, 3)] * 3),
        vs.UnionOfFamilies([vs.Pixels(), vs.Stumps(1)]),
    ]
    for family in made:
        family = family.fit(images)
        yield family.take(np.arange(min(6, family.n_features_)))


def _model(family: Any, number: int) -> Any:
    from visionshare import CompactClassifier
    from visionshare.classifier import PathStep

    rng, n = np.random.default_rng(number), family.n_features_
    weights = rng.normal(size=(3, n)).astype(np.float32)
    zeros = np.zeros(3, np.float32)
    path = [
        PathStep(t, (t,), t, weights[:, :t], zeros, 1.0, 0.1, None, None, 0.1, 10, 1.0)
        for t in range(1, n + 1)
    ]
    classes = np.arange(3) if number % 2 else np.array(["a", "b", "ç"])
    return CompactClassifier(family, weights, zeros, classes, 2.0, path, {"made": "up"})


HOSTILE: list[Any] = [
    None, True, -1, 0, 1, 2, 7, 2**31, 2**63, 2**64, 10**30, -(2**63), 0.5, -0.0, 1e308, 1e-320,
    float("nan"), float("inf"), "", "a", "0" * 5000, "\x00", "\ud800", [], {}, [[]], [1] * 2000,
    ["a", 1], {"a": 1}, "pixels", "union", "F64", "I64", [3, 3], [65536, 65536], [-1, -1], [0],
]  # fmt: skip


def _deep() -> Any:
    held: Any = 1
    for _ in range(400):
        held = [held]
    return held


def _nodes(value: Any) -> list[tuple[Any, Any]]:
    """Return every place in nested tables and lists, as what holds it and its key."""
    found, left = [], [value]
    while left:
        held = left.pop()
        keys = list(held) if isinstance(held, dict) else range(min(len(held), 50))
        for key in keys:
            found.append((held, key))
            if isinstance(held[key], (dict, list)):
                left.append(held[key])
    return found


def _change(value: Any, rng: np.random.Generator) -> None:
    """Change one place of nested plain values."""
    nodes = _nodes(value)
    if not nodes:
        return
    held, key = nodes[rng.integers(0, len(nodes))]
    fault = rng.integers(0, 10)
    if fault == 0:
        del held[key]
    elif fault == 1:
        held[key] = _deep()
    elif fault == 2 and isinstance(held, list):
        held.append(held[key])
    elif fault == 3 and type(held[key]) in (int, float):
        held[key] = held[key] + int(rng.integers(-2, 3))
    elif fault == 4:
        other, another = nodes[rng.integers(0, len(nodes))]
        with suppress(LookupError):
            # Parts of the file in places of other parts; never of themselves.
            held[key] = json.loads(json.dumps(other[another]))
    else:
        held[key] = copy.deepcopy(HOSTILE[rng.integers(0, len(HOSTILE))])


def mutated_classifier(seeds: list[bytes], rng: np.random.Generator) -> bytes:
    """Return a damaged file, or one that a stranger made and sealed."""
    content = seeds[rng.integers(0, len(seeds))]
    if rng.random() < 0.2:
        return mutated(content, rng)
    length = int.from_bytes(content[:8], "little")
    table, body = json.loads(content[8 : 8 + length]), bytearray(content[8 + length :])
    header = json.loads(table.pop("__metadata__")["visionshare"])
    for _ in range(rng.integers(0, 3)):
        _change(header, rng)
    if rng.random() < 0.3:
        _change(table, rng)
    if rng.random() < 0.5 and len(body) >= 8:
        place = 4 * int(rng.integers(0, len(body) // 4))
        kinds = (np.float32([np.nan, np.inf, -np.inf, 3e38, 1e-42]), np.int64([-1, 2**62, 9, 0]))
        values = kinds[rng.integers(0, 2)]
        held = values[rng.integers(0, len(values))].tobytes()
        body[place : place + len(held)] = held
    return _sealed(header, table, bytes(body))


def _sealed(header: Any, table: Any, body: bytes) -> bytes:
    """Return the file with the sum that its maker would write."""
    from visionshare.fingerprints import spec_fingerprint

    if isinstance(header, dict):
        header.pop("sha256", None)
        with suppress(Exception):
            arrays = {}
            for name, entry in table.items():
                start, stop = entry["data_offsets"]
                kind = {"F32": "<f4", "I64": "<i8"}[entry["dtype"]]
                arrays[name] = np.frombuffer(body[start:stop], kind).reshape(entry["shape"])
            header["sha256"] = spec_fingerprint(header, arrays)
    text = json.dumps({"__metadata__": {"visionshare": json.dumps(header)}, **table}).encode()
    return len(text).to_bytes(8, "little") + text + body


def use_classifier(content: bytes, rng: np.random.Generator) -> None:
    """Load a file, and where that is possible do all that it can."""
    from visionshare import load
    from visionshare.export import c_program

    path = Path(tempfile.gettempdir()) / f"fuzz-{os.getpid()}.safetensors"
    try:
        path.write_bytes(content)
        model = load(path)
        if int(np.prod(model.image_shape)) > _LARGEST_IMAGE:
            return
        images = rng.integers(0, 256, (2, *model.image_shape), np.uint8)
        model.predict_proba(images)
        json.dumps(model.summary())
        if model.path:
            model.at(len(model.path)).decision_function(images[:1])
        if model.exit_rule is not None:
            from visionshare.classifier import EarlyExit

            EarlyExit(model).predict(images)
        if model.picture_size is not None:
            model.preprocessing.apply(np.zeros((9, 9), np.uint8), model.picture_size)
        if rng.random() < 0.1:
            c_program(model)
            model.save(path)
    finally:
        path.unlink(missing_ok=True)


# --- images ----------------------------------------------------------------------------------


@cache
def image_seeds() -> list[bytes]:
    """Return a small picture of every format and mode."""
    from PIL import Image

    rng = np.random.default_rng(0)
    grey = Image.fromarray(rng.integers(0, 256, (13, 17), np.uint8))
    color = Image.fromarray(rng.integers(0, 256, (13, 17, 3), np.uint8))
    deep = Image.fromarray(rng.integers(0, 65536, (13, 17)).astype(np.uint16))
    clear = Image.fromarray(rng.integers(0, 256, (13, 17, 4), np.uint8), "RGBA")
    exif = Image.Exif()
    exif[0x0112] = 6
    found = []

    def add(image: Image.Image, kind: str, **options: Any) -> None:
        held = io.BytesIO()
        image.save(held, kind, **options)
        found.append(held.getvalue())

    for image in (grey, color, clear, deep, grey.convert("1"), color.convert("P")):
        add(image, "png")
    add(color.convert("P"), "png", transparency=3)
    add(grey, "png", exif=exif)
    add(color, "jpeg", exif=exif)
    add(color, "jpeg", progressive=True)
    for image in (grey, color.convert("CMYK")):
        add(image, "jpeg")
    add(grey, "gif", save_all=True, append_images=[grey.rotate(90)])
    for image in (grey, color, color.convert("P"), grey.convert("1")):
        add(image, "bmp")
    for way in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
        add(color, "tiff", compression=way)
    for image in (deep, grey.convert("F"), grey.convert("I"), clear):
        add(image, "tiff")
    for image in (grey, deep, color, grey.convert("1")):
        add(image, "ppm")
    add(color, "webp")
    add(clear, "webp", lossless=True)
    found += [b"P2\n2 2\n255\n1 2 3 4\n", b"P3\n1 1\n255\n1 2 3\n", b"P1\n2 2\n1 0 0 1\n"]
    return found


def mutated_image(seeds: list[bytes], rng: np.random.Generator) -> bytes:
    """Return a damaged picture; the sums of a PNG may be right again."""
    content = seeds[rng.integers(0, len(seeds))]
    if rng.random() < 0.05:
        return _bomb(rng)
    damaged = mutated(content, rng)
    return _summed(damaged) if damaged[:4] == b"\x89PNG" and rng.random() < 0.7 else damaged


def _bomb(rng: np.random.Generator) -> bytes:
    """Return a PNG that says it is huge, or that unpacks to much."""
    side = int(rng.choice([1000, 8000, 20_000, 65_536, 2**31 - 1]))
    depth, color = ((1, 0), (8, 2), (16, 6), (8, 3))[rng.integers(0, 4)]
    head = side.to_bytes(4, "big") * 2 + bytes([depth, color, 0, 0, int(rng.integers(0, 2))])
    parts = [(b"IHDR", head)]
    if rng.random() < 0.3:
        parts.append((b"zTXt", b"a\0\0" + zlib.compress(bytes(1 << 23))))
    if rng.random() < 0.3:
        parts.append((b"iCCP", b"a\0\0" + zlib.compress(bytes(1 << 23))))
    parts.append((b"IDAT", zlib.compress(bytes(1 << int(rng.integers(4, 24))))))
    parts.append((b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        len(held).to_bytes(4, "big") + name + held + zlib.crc32(name + held).to_bytes(4, "big")
        for name, held in parts
    )


def _summed(content: bytes) -> bytes:
    """Return a PNG whose parts have the right sums."""
    held, place = bytearray(content), 8
    while place + 12 <= len(held):
        end = place + 8 + int.from_bytes(held[place : place + 4], "big")
        if end + 4 > len(held):
            break
        held[end : end + 4] = zlib.crc32(held[place + 4 : end]).to_bytes(4, "big")
        place = end + 4
    return bytes(held)


def use_image(content: bytes, rng: np.random.Generator) -> None:
    """Read a picture, prepared in some way."""
    from visionshare.datasets import Preprocessing
    from visionshare.datasets.folders import read_image

    ways = (
        Preprocessing(),
        Preprocessing(fit="centre"),
        Preprocessing("automatic", True, True, fit="box", margin=4, centre="mass"),
        Preprocessing("dark_on_light", True),
    )
    mode = ("grey", "color")[rng.integers(0, 2)]
    made = read_image(io.BytesIO(content), (28, 28), mode, ways[rng.integers(0, len(ways))])
    if made.shape[:2] != (28, 28) or made.dtype != np.uint8:
        raise AssertionError(f"{made.dtype} of shape {made.shape}")


# --- requests --------------------------------------------------------------------------------


@cache
def request_seeds() -> list[bytes]:
    """Return bodies with their content type, a line before each."""
    picture = image_seeds()
    edge = b"multipart/form-data; boundary=edge\n"
    form = (
        b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n'
        b"Content-Type: image/png\r\n\r\n" + picture[0] + b"\r\n--edge--\r\n"
    )
    pixels = json.dumps({"pixels": [[7] * 8] * 8}).encode()
    return [
        *(b"image/png\n" + held for held in picture[:16]),
        b"application/octet-stream\n" + picture[2],
        edge + form,
        edge + form.replace(b"a.png", b"b.png"),
        b"application/json\n" + pixels,
        b"application/json\n" + pixels,
    ]


def mutated_request(seeds: list[bytes], rng: np.random.Generator) -> bytes:
    """Return a content type and a body, damaged."""
    held = seeds[rng.integers(0, len(seeds))]
    kind, _, body = held.partition(b"\n")
    if rng.random() < 0.1:
        kind = mutated(kind, rng)
    if kind == b"application/json" and rng.random() < 0.5:
        said = json.loads(body)
        _change(said, rng)
        body = json.dumps(said).encode()
    elif rng.random() < 0.02:
        body = bytes(1 << 21)
    else:
        body = mutated(body, rng)
    return kind.replace(b"\n", b"") + b"\n" + body


@cache
def _service() -> tuple[Any, Any]:
    from visionshare import PatchTemplates
    from visionshare.apps.service import Limits, service
    from visionshare.datasets import load_dataset

    images = load_dataset("digits", "train").images[:60]
    family = PatchTemplates(3, 6, 2, (2.0,), n_patches=200).fit(images).take(np.arange(6))
    loop = asyncio.new_event_loop()
    return service(_model(family, 0), Limits(body=1 << 20, pixels=1 << 22)), loop


def use_request(content: bytes, rng: np.random.Generator) -> None:
    """Send a request; a refusal that is typed JSON is a typed error."""
    app, loop = _service()
    kind, _, body = content.partition(b"\n")
    method = rng.choice(["POST"] * 8 + ["GET", "PUT"])
    path = rng.choice(["/predict"] * 8 + ["/", "/health", "/metrics", "/%00", "/predict/"])
    query = [b"", b"raster=true", b"raster=%ff", b"=&&="][rng.integers(0, 4)]
    headers = [(b"content-type", kind)]
    if rng.random() < 0.5:
        said = [str(len(body)).encode(), b"5", b"-1", b"9" * 40, b"\xff"][rng.integers(0, 5)]
        headers.append((b"content-length", said))
    scope = {
        "type": "http", "method": str(method), "path": str(path), "query_string": query,
        "headers": headers, "http_version": "1.1", "scheme": "http", "server": ("here", 80),
        "client": ("there", 1), "root_path": "", "asgi": {"version": "3.0"},
    }  # fmt: skip
    status, answer = loop.run_until_complete(_answer(app, scope, body, rng))
    if status >= 500:
        raise AssertionError(f"status {status}: {answer[:80]!r}")
    if status >= 400:
        error = json.loads(answer)["error"]
        raise VisionshareError(f"{error['kind']}: {error['message']}")
    if status >= 300 or (str(path) == "/predict" and "label" not in json.loads(answer)):
        if status in (307, 308):
            return
        raise AssertionError(f"status {status}: {answer[:80]!r}")


async def _answer(
    app: Any, scope: dict[str, Any], body: bytes, rng: np.random.Generator
) -> tuple[int, bytes]:
    size = int(rng.choice([7, 1000, 1 << 16, 1 << 22]))
    size = max(size, len(body) // 200)
    parts = [body[i : i + size] for i in range(0, len(body), size)] or [b""]
    broken_off = rng.random() < 0.05
    said: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if broken_off and len(parts) == 1:
            return {"type": "http.disconnect"}
        part = parts.pop(0) if parts else b""
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    await app(scope, receive, send)
    return said[0]["status"], b"".join(m.get("body", b"") for m in said[1:])


KINDS = {
    "classifier": Kind(classifier_seeds, mutated_classifier, use_classifier),
    "image": Kind(image_seeds, mutated_image, use_image),
    "request": Kind(request_seeds, mutated_request, use_request),
}

GOOD = ("accepted", "typed error")

# --- running ---------------------------------------------------------------------------------


class TooSlow(BaseException):
    """An input took longer than it may."""


def made(kind: str, seed: int, number: int) -> tuple[bytes, np.random.Generator]:
    """Return an input, and the generator that goes on to say how it is used."""
    rng = np.random.default_rng((seed, list(KINDS).index(kind), number))
    return KINDS[kind].mutate(KINDS[kind].seeds(), rng), rng


def tried(kind: str, seed: int, number: int) -> str:
    """Return "accepted", "typed error", or what went wrong."""
    content, rng = made(kind, seed, number)
    try:
        KINDS[kind].attempt(content, rng)
        return "accepted"
    except VisionshareError as error:
        return "typed error" if "\n" not in str(error) else "an error of several lines"
    except (Exception, TooSlow) as error:
        return " ".join(f"{type(error).__name__}: {error}".split())[:200]


@contextmanager
def _clock() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TooSlow(f"more than {_SECONDS} s")

    signal.signal(signal.SIGALRM, ring)
    try:
        yield
    finally:
        signal.alarm(0)


def work(kind: str, seed: int, numbers: range) -> None:
    """Try inputs within bounds; write a line before each, and how it ended after it."""
    KINDS[kind].seeds()
    warnings.simplefilter("error")
    # Compiled kernels and thread stacks take what they take: the bound is on top of it.
    for number in range(8):
        tried(kind, seed + 1_000_003, number)
    with open("/proc/self/statm") as file:
        own = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (own + _MEMORY, own + _MEMORY))
    with _clock():
        for number in numbers:
            print("at", number, flush=True)
            signal.alarm(_SECONDS)
            result = tried(kind, seed, number)
            signal.alarm(0)
            print("end", result, flush=True)


def run(kind: str, seed: int, inputs: int) -> tuple[Counter[str], list[str]]:
    """Return how many inputs of a kind ended how, and what is wrong with which."""
    counts: Counter[str] = Counter()
    faults: list[str] = []
    first = 0
    while first < inputs:
        command = [sys.executable, __file__, "--kind", kind, "--seed", str(seed)]
        command += ["--work", str(first), str(inputs)]
        last = first - 1
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as worker:
            for line in worker.stdout or ():
                word, _, rest = line.rstrip("\n").partition(" ")
                if word == "at":
                    last = int(rest)
                elif rest in GOOD:
                    counts[rest] += 1
                else:
                    counts["crashed"] += 1
                    faults.append(f"{last} {rest}")
        if worker.returncode == 0:
            break
        if last < first:
            raise SystemExit(f"{kind}: does not start (exit code {worker.returncode})")
        counts["crashed"] += 1
        faults.append(f"{last} the process died (exit code {worker.returncode})")
        first = last + 1
    return counts, faults


def main() -> int:
    """Run, print a table, and return 1 where something crashed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=list(KINDS), action="append")
    parser.add_argument("--only", type=int, help="try this one here, without bounds")
    parser.add_argument("--save", type=Path, help="with --only: where to write the input")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    kinds = options.kind or list(KINDS)
    if options.only is not None:
        content, rng = made(kinds[0], options.seed, options.only)
        if options.save is not None:
            options.save.write_bytes(content)
        KINDS[kinds[0]].attempt(content, rng)
        return 0
    if options.work is not None:
        work(kinds[0], options.seed, range(*options.work))
        return 0
    print(f"{'kind':12}{'tried':>9}{'typed error':>13}{'accepted':>10}{'crashed':>9}")
    crashed = 0
    for kind in kinds:
        counts, faults = run(kind, options.seed, options.inputs)
        ends = counts["typed error"], counts["accepted"], counts["crashed"]
        print(f"{kind:12}{sum(counts.values()):9}{ends[0]:13}{ends[1]:10}{ends[2]:9}", flush=True)
        for fault in faults[:_SHOWN]:
            print(f"    {fault}")
        crashed += ends[2]
    return int(crashed > 0)


if __name__ == "__main__":
    sys.exit(main())
