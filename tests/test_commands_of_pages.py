"""Every command and every snippet of the pages for users runs as written, in order."""

import ast
import contextlib
import gzip
import io
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
from glob import glob
from pathlib import Path

import cv2
import numpy as np
import pytest
from sklearn.datasets import load_digits

import visionshare
from scripts.clusters.local import local_cluster
from visionshare import CompactClassifier, PatchTemplates, Pixels, ShareBoost
from visionshare.cli.main import main
from visionshare.columns import ArrayColumns
from visionshare.datasets import catalog, catalog_sets

DOCS = Path(__file__).parents[1] / "docs"
# Pages that begin in an empty folder; a page's blocks run one after the other.
PAGES = ["quickstart", "own-pictures", "concepts", "meters", *sorted(
    f"{folder}/{page.stem}" for folder in ("families", "howto")
    for page in (DOCS / folder).glob("*.md")
    if page.stem != "index" and f"{folder}/{page.stem}" != "families/sources"
)]  # fmt: skip
IN_MEMORY = ("family", "loss", "search", "targets")
# Pages that name what a reader has: they begin in a folder of such things, see `reader`.
READERS_PAGES = ["families/sources"]
# Those that take minutes: run where VISIONSHARE_LONG is set, as by scripts/pages.
LONG_PAGES = [
    "../README", "after_training", "commands", "edge", "explaining", "image_classifier",
    "reading", "few_bits",
]  # fmt: skip
# What stands for what a reader has, and for times of half an hour.
STAND_INS = {"DATA": "data", "DIR": "data", "--time 30m": "--time 20s", "--time 5m": "--time 10s"}
# The classifier of a line is that of the data it names: the first that is found in it.
CLASSIFIERS = {"mnist": "mnist", "photo": "photos", "read ": "ocr", "": "digits"}
# Searches of a minute get a budget that allows quick trials alone; scripts/pages makes them whole.
SEARCHES = {"visionshare train samples/signs": ["--budget", "150"]}
# What is learned before a page begins.
PREPARED = {
    "commands": ["visionshare train digits --out sources/digits"],
    "edge": [
        "visionshare train mnist --data data",
        "visionshare train photos --recipe mnist-200k --set fine_tuning.epochs=2",
    ],
    "reading": ["visionshare train ocr"],
}
# Pages with code that is not run, each with the reason; options and imports of all are checked.
NOT_RUN = {
    "../CONTRIBUTING": "it calls the scripts of a clone, tests among them",
}
# Pages that need programs beside them: each has a test of its own below.
WITH_PROGRAMS = ["adding", "clusters", "service"]
# Installation is tested with the packages themselves.
INSTALLATION = ("pip", "python3", ".")
# C that was exported, where there is a compiler.
COMPILED = ("make", "cc", "digits-c/example")


def _blocks(page):
    """Return the kind and the text of each block of code."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^```(sh|python)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


# What several pages begin with: it runs once, and each later page gets a copy of its files.
BEGINNINGS = ("visionshare train digits", "visionshare samples")


@pytest.fixture(scope="module", autouse=True)
def _beginnings(tmp_path_factory):
    """Give `_begin` a folder for each beginning."""
    _begin.folders = {line: tmp_path_factory.mktemp("begun") / "files" for line in BEGINNINGS}


def _begin(line):
    made = _begin.folders[line]
    if not made.exists():
        made.mkdir()
        before = Path.cwd()
        os.chdir(made)
        try:
            assert main(line.split()[1:]) == 0, line
        finally:
            os.chdir(before)
    shutil.copytree(made, ".", dirs_exist_ok=True)


def _run(line):
    if line in BEGINNINGS:
        _begin(line)
        return
    words = [
        name
        for word in shlex.split(line, comments=True)
        for name in ((sorted(glob(word)) if "*" in word and "[" not in word else []) or [word])
    ]
    if not words or words[0] in INSTALLATION or words[0].startswith("scripts/"):
        return
    if words[:2] == ["visionshare", "serve"]:
        _serve(words)
    elif words[0] == "visionshare":
        short = [] if "VISIONSHARE_LONG" in os.environ else SEARCHES.get(line.strip(), [])
        assert main([*words[1:], *short]) == 0, line
    else:
        assert words[0] in COMPILED, line
        if shutil.which("make") and shutil.which("cc"):
            subprocess.run(words, check=True, timeout=300)


def _with_stand_ins(line):
    for word, thing in STAND_INS.items():
        line = re.sub(rf"(?<![\w.]){re.escape(word)}(?!\w)", thing, line)
    return _with_classifier(line)


def _with_classifier(line):
    name = next(name for word, name in CLASSIFIERS.items() if word in line)
    return line.replace("CLASSIFIER", f"out/{name}/classifier.safetensors")


def _run_page(page, stand_ins=False):
    names = {"__name__": "page"}
    for kind, text in _blocks(page):
        text = "\n".join(_with_stand_ins(line) for line in text.splitlines()) if stand_ins else text
        if kind == "python":
            if "onnxruntime" in text:
                pytest.importorskip("onnxruntime")
            exec(compile(text, f"{page}.md", "exec"), names)
        else:
            for line in text.replace("\\\n", " ").splitlines():
                _run(line)


# Ten to twenty seconds each; `scripts/test --all` runs them.
SLOW = ("howto/teaching", "howto/textures", "howto/transfer", "own-pictures")


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.exhaustive) if page in SLOW else page for page in PAGES],
)
def test_a_page_runs_as_written(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    _run_page(page)
    files = os.listdir(tmp_path)
    in_memory = ("concepts", *(f"howto/{name}" for name in IN_MEMORY))
    assert files or page in in_memory or page.startswith("families/")


def _write_mnist(folder):
    """Write a small set of files as MNIST has them: digits of scikit-learn, 28 pixels large."""
    digits = load_digits()
    images = [cv2.resize(image.astype(np.float32) * 15, (20, 20)) for image in digits.images[:700]]
    images = np.pad(np.array(images).astype(np.uint8), ((0, 0), (4, 4), (4, 4)))
    folder.mkdir(parents=True)
    for name, part in (("train", slice(500)), ("t10k", slice(500, 700))):
        pixels, labels = images[part], digits.target[:700][part].astype(np.uint8)
        head = np.array([2051, len(pixels), 28, 28], ">i4").tobytes()
        file = folder / f"{name}-images-idx3-ubyte.gz"
        file.write_bytes(gzip.compress(head + pixels.tobytes()))
        head = np.array([2049, len(labels)], ">i4").tobytes()
        file = folder / f"{name}-labels-idx1-ubyte.gz"
        file.write_bytes(gzip.compress(head + labels.tobytes()))


@pytest.fixture(scope="module")
def readers_things(tmp_path_factory):
    """Return a folder of what a reader has: pictures, data, a classifier."""
    folder = tmp_path_factory.mktemp("reader")
    before = Path.cwd()
    os.chdir(folder)
    try:
        _begin("visionshare train digits")
        assert main(["samples", "s"]) == 0
    finally:
        os.chdir(before)
    for target, classes in {"photos": ("stop", "yield"), "sources": ("stop", "parking")}.items():
        for name in classes:
            files = sorted((folder / "s" / "signs" / name).iterdir())[:24]
            (folder / target / name).mkdir(parents=True)
            for file in files:
                shutil.copy(file, folder / target / name)
    (folder / "photos" / "yield").rename(folder / "photos" / "cat")
    for name in ("new", "scans"):
        shutil.copytree(folder / "s" / "scans", folder / name)
    sign = cv2.imread(str(next((folder / "photos" / "cat").iterdir())))
    cv2.imwrite(str(folder / "photo.png"), sign)
    cv2.imwrite(str(folder / "new" / "sign.jpg"), sign)
    shutil.copy(folder / "s" / "page.png", folder / "page.png")
    classifier = folder / "out" / "digits" / "classifier.safetensors"
    for name in ("letters.safetensors", "classifier.safetensors"):
        shutil.copy(classifier, folder / name)
    _write_mnist(folder / "data" / "mnist")
    shutil.rmtree(folder / "s")
    return folder


@pytest.mark.parametrize("page", READERS_PAGES + LONG_PAGES)
def test_a_page_runs_with_stand_ins(page, readers_things, tmp_path, monkeypatch, capsys):
    if page in LONG_PAGES and "VISIONSHARE_LONG" not in os.environ:
        pytest.skip("minutes; scripts/pages runs it")
    if page == "edge":
        pytest.importorskip("ziglang")
        pytest.importorskip("unicorn")
    folder = tmp_path / "reader"
    shutil.copytree(readers_things, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "agg")
    # The small stand-in is not the published set, and its digest is another.
    monkeypatch.setattr(catalog, "_is_the_file", lambda file, listed: True)
    monkeypatch.setattr(catalog_sets, "_check_shape", lambda info, part, images: None)
    for line in PREPARED.get(page, ()):
        _run(line)
    _run_page(page, stand_ins=True)


def _await(url):
    """Wait until a service answers, a minute at most."""
    for _ in range(600):
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status
        time.sleep(0.1)
    raise TimeoutError(url)


@contextlib.contextmanager
def _program(*words):
    process = subprocess.Popen([sys.executable, "-m", *words], stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        assert process.wait(120) in (0, -signal.SIGTERM)


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _serve(words):
    """Start a service as written, but for its port, until it answers."""
    pytest.importorskip("fastapi")
    port = _free_port()
    with _program(*words, "--port", str(port)):
        assert _await(f"http://127.0.0.1:{port}/health") == 200


def test_the_page_of_the_service_runs(tmp_path, monkeypatch):
    """The service is started as written; each curl gets an answer that is no error."""
    pytest.importorskip("fastapi")
    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    monkeypatch.chdir(tmp_path)
    # The page's pixels are those of an image of two rows and two columns.
    family = Pixels().fit(np.zeros((1, 2, 2), np.uint8))
    classifier = CompactClassifier(family, np.eye(2, 4), np.zeros(2), np.array(["a", "b"]))
    (tmp_path / "out" / "digits").mkdir(parents=True)
    classifier.save(tmp_path / "out" / "digits" / "classifier.safetensors")
    cv2.imwrite("photo.jpg", np.zeros((20, 30), np.uint8))
    lines = [line for kind, text in _blocks("service") if kind == "sh"
             for line in text.replace("\\\n", " ").splitlines()]  # fmt: skip
    serve = next(line for line in lines if line.startswith("visionshare serve"))
    port = _free_port()
    words = shlex.split(serve, comments=True)
    with _program(*words, "--port", str(port)):
        _await(f"http://127.0.0.1:{port}/health")
        calls = [line for line in lines if line.startswith("curl")]
        assert len(calls) == 3
        for call in calls:
            command = shlex.split(call.replace("127.0.0.1:8000", f"127.0.0.1:{port}"))
            done = subprocess.run(
                [*command, "--silent", "--fail-with-body"], capture_output=True, check=False
            )
            assert done.returncode == 0, (call, done.stdout)
            answer = json.loads(done.stdout)
            assert "label" in answer, call


def _pictures_in_storage(endpoint, monkeypatch):
    """Put tars of pictures where the page of clusters reads them."""
    for key, value in {
        "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(key, value)
    import fsspec
    import pyarrow
    from pyarrow import parquet

    files = fsspec.filesystem("s3", skip_instance_cache=True)
    files.mkdir("bucket")
    _, picture = cv2.imencode(".png", np.zeros((8, 8), np.uint8))
    for name in ("a", "b"):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for number in range(3):
                entry = tarfile.TarInfo(f"{name}{number}.png")
                entry.size = len(picture)
                tar.addfile(entry, io.BytesIO(picture.tobytes()))
        files.pipe(f"bucket/shards/{name}.tar", buffer.getvalue())
    rng = np.random.default_rng(0)
    rows = []
    for number in range(60):
        color = rng.integers(0, 256, (40, 40, 3), np.uint8) // (1 + number % 2)
        rows.append({"image": {"bytes": cv2.imencode(".png", color)[1].tobytes(), "path": None},
                     "label": number % 2})  # fmt: skip
    for name in ("a", "b"):
        buffer = io.BytesIO()
        table = pyarrow.Table.from_pylist(rows)
        names = {"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}
        parquet.write_table(
            table.replace_schema_metadata({"huggingface": json.dumps(names)}), buffer
        )
        files.pipe(f"bucket/train-{name}.parquet", buffer.getvalue())


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)
def test_the_page_of_clusters_runs(readers_things, tmp_path, monkeypatch, capsys):
    """Its commands and its Python, with a scheduler, a worker and storage of this machine."""
    if "VISIONSHARE_LONG" not in os.environ:
        pytest.skip("minutes; scripts/pages runs it")
    pytest.importorskip("distributed")
    pytest.importorskip("pyarrow")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    shutil.copytree(readers_things, tmp_path / "reader")
    monkeypatch.chdir(tmp_path / "reader")
    monkeypatch.setattr(catalog, "_is_the_file", lambda file, listed: True)
    monkeypatch.setattr(catalog, "_check_shape", lambda info, part, images, labels: None)
    try:
        _pictures_in_storage("http://{}:{}".format(*server.get_host_and_port()), monkeypatch)
        with local_cluster(2, tmp_path) as address:
            names = _names_of_clusters()
            for kind, text in _blocks("clusters"):
                text = text.replace("tcp://head:8786", address).replace("~/data", "data")
                # Patches of a few pictures do not make thousands of templates.
                text = text.replace("PatchTemplates(5, 2000)", "PatchTemplates(5, 20)")
                if kind == "python":
                    exec(compile(text, "clusters.md", "exec"), names)
                    continue
                for line in text.splitlines():
                    _run(_with_classifier(line))
    finally:
        server.stop()
    # Three pictures in each of two tars, below a line of names.
    header, *rows = (tmp_path / "reader" / "classes.csv").read_text().splitlines()
    assert header == "image,class,probability"
    assert len(rows) == 6


def _names_of_clusters():
    """Return what the Python of the page of clusters takes for granted."""
    import dask.array

    digits = load_digits()
    images = (digits.images[:400] * 15).astype(np.uint8)
    family = PatchTemplates(3, 12, grid=3, widths=(2.0,), n_patches=500).fit(images)
    X = dask.array.from_array(digits.data[:400].astype(np.float32), chunks=(100, -1))
    y = dask.array.from_array(digits.target[:400], chunks=100)
    return {"X": X, "y": y, "family": family, "images": images, "labels": digits.target[:400]}


def test_the_page_of_parts_has_checks_that_pass_and_code_of_the_library():
    """Its checks run on parts of a reader; what it shows of C and ONNX is what the library has."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6)).astype(np.float32)
    names = {
        "MyFamily": Pixels, "images": rng.integers(0, 256, (12, 4, 4), np.uint8),
        "my_columns": ArrayColumns(X.copy()), "X": X, "MyLearner": ShareBoost,
    }  # fmt: skip
    shown = []
    for kind, text in _blocks("adding"):
        if kind == "python" and "def emit" in text:
            shown += ast.parse(text).body
        elif kind == "python":
            # The checks of a learner take minutes; every learner passes them in its own tests.
            exec(
                compile(text.replace("check_learner(My", "callable(My"), "adding.md", "exec"), names
            )
    library = Path(visionshare.__file__).parent / "generators"
    template = (library / "pixels" / "c.c.j2").read_text(encoding="utf-8")
    assert f"```c\n{template}```" in (DOCS / "adding.md").read_text(encoding="utf-8")
    assert [ast.dump(node.body[-1]) for node in shown] == [
        ast.dump(_emit(library / name).body[-1]) for name in ("pixels/c.py", "stumps/onnx.py")
    ]


def _emit(file):
    """Return the function ``emit`` of a module."""
    (found,) = [
        node for node in ast.parse(file.read_text(encoding="utf-8")).body
        if getattr(node, "name", "") == "emit"
    ]  # fmt: skip
    return found


def test_the_pages_are_those_that_users_read():
    assert {"quickstart", "own-pictures", "howto/small-cores", "howto/onnx"} <= set(PAGES)
    assert all(_blocks(page) for page in PAGES)


def test_every_page_with_code_is_run_or_says_why_not():
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")}
    pages |= {f"../{page.stem}" for page in DOCS.parent.glob("*.md")}
    pages = {page for page in pages if not page.startswith("decisions/")}
    listed = [*PAGES, *READERS_PAGES, *LONG_PAGES, *WITH_PROGRAMS, *NOT_RUN]
    assert sorted(page for page in pages if _blocks(page)) == sorted(listed)
