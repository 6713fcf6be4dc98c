"""The wheel and the sdist: what is in them, and that an installed wheel runs without the clone."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import visionshare

ROOT = Path(__file__).parents[1]
BUNDLED = ("data", "features", "pipelines", "models")
VERSION = visionshare.__version__

pytest.importorskip("build")
pytest.importorskip("hatchling")


def _tracked():
    """Return the files that git tracks, or would: what a release holds."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("no clone")
    return {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return out


def test_the_wheel_has_what_runs_need(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
    package = {name for name in _tracked() if name.startswith("visionshare/")}
    bundled = {
        f"visionshare/_bundled/{name}" for name in _tracked() if name.split("/")[0] in BUNDLED
    }
    metadata = f"visionshare-{VERSION}.dist-info/"
    assert {name for name in names if not name.startswith(metadata)} == package | bundled
    kinds = {Path(name).suffix for name in names}
    assert {".py", ".pyi", ".j2", ".toml"} <= kinds
    assert {"visionshare/py.typed", f"{metadata}licenses/LICENSE"} <= names


def test_the_sdist_has_what_building_and_testing_need(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    needed = {name for name in _tracked() if not name.startswith(".")}
    assert needed <= names
    assert {"PKG-INFO", "pyproject.toml", "LICENSE", "CITATION.cff"} <= names
    assert not [name for name in names if name.split("/")[0] in (".venv", "build", "out", "dist")]


def _take_compiled_kernels(site):
    """Copy the clone's compiled kernels: numba knows a source by its size and time."""
    for source in (site / "visionshare").rglob("*.py"):
        shutil.copystat(ROOT / source.relative_to(site), source)
    for kernel in (ROOT / "visionshare").rglob("*.nb[ci]"):
        target = site / kernel.relative_to(ROOT)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(kernel, target)


def test_an_installed_wheel_trains_without_the_clone(built, tmp_path):
    (path,) = built.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(site)
    _take_compiled_kernels(site)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    program = (
        "import sys, visionshare; from visionshare.cli.main import main; "
        "print(visionshare.__file__); sys.exit(main(sys.argv[1:]))"
    )
    for words in (["train", "digits", "--rounds", "2"], ["samples", "samples"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *words],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
        assert done.stdout.startswith(str(site))
    assert (tmp_path / "out" / "digits" / "classifier.safetensors").is_file()
    assert (tmp_path / "samples" / "page.png").is_file()


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == VERSION
    assert citation["authors"] == [{"name": "The visionshare developers"}]
    assert citation["license"] == "BSD-3-Clause"
