"""A package imports only from lower levels; imports stay cheap.

Levels, imports within level 0 and the walk of an image are read from CONTRIBUTING.md.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import visionshare
from visionshare import CompactClassifier, PatchTemplates
from visionshare.cli.main import main

PACKAGE = Path(__file__).parent.parent / "visionshare"
CONTRIBUTING = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")


def _block(name):
    """Return the lines of CONTRIBUTING.md after a marker, until an empty one."""
    (block,) = re.findall(rf"<!-- {name}: .*-->\n((?:.+\n)+)", CONTRIBUTING)
    return block.splitlines()


def _cells(name):
    """Return the backquoted names of each cell of a table's rows, and the first cell."""
    for line in _block(name)[2:]:
        cells = line.strip("|").split("|")
        yield cells[0].strip(), [re.findall(r"`(\w+)`", cell) for cell in cells]


LEVELS = {package: int(level) for level, (_, row, _) in _cells("levels") for package in row}
FOUNDATIONS = {
    (package, other) for _, ((package,), others) in _cells("foundations") for other in others
}  # fmt: skip
# The package itself and the command of `python -m` belong to no level.
ENTRIES = {"__init__", "__main__"}
WALK = [re.search(r"`([\w.]+)`", line)[1] for line in _block("walk")]


def _package(path: Path) -> str:
    part = path.relative_to(PACKAGE).parts[0]
    return part.removesuffix(".py")


def _imports(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.startswith("visionshare.")
        ):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("visionshare."):
                    yield alias.name.split(".")[1]


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_packages_import_only_from_lower_levels(path):
    package = _package(path)
    if package in ENTRIES:
        return
    for other in _imports(path):
        if other != package and (package, other) not in FOUNDATIONS:
            assert LEVELS[other] < LEVELS[package], f"{package} imports {other}"
    assert package in LEVELS


def test_every_package_has_a_level():
    packages = {_package(path) for path in PACKAGE.rglob("*.py")} - ENTRIES
    assert set(LEVELS) == packages
    assert set(LEVELS.values()) == set(range(8))
    lowest = {package for package, level in LEVELS.items() if level == 0}
    assert {package for pair in FOUNDATIONS for package in pair} <= lowest


def _followed(function):
    """Return the functions of the library that a call passes, in the order of their first call."""
    root, passed = os.path.dirname(visionshare.__file__), {}

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root):
            module = os.path.relpath(code.co_filename, root).removesuffix(".py")
            owner = frame.f_locals.get("self")
            # The class that defines the function; before Python 3.11 a code has no name of it.
            classes = [c for c in type(owner).__mro__ if code.co_name in vars(c)]
            names = [module.replace("/", "."), *(c.__name__ for c in classes[:1]), code.co_name]
            passed.setdefault(".".join(names))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return list(passed)


def test_the_walk_of_an_image(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (30, 12, 12), np.uint8)
    family = PatchTemplates(3, 6, 2, (2.0,), n_patches=200).fit(images).take(np.arange(4))
    model = CompactClassifier(family, rng.normal(size=(2, 4)), np.zeros(2), np.array(["a", "b"]))
    model.save(tmp_path / "classifier.safetensors")
    (tmp_path / "pictures").mkdir()
    Image.fromarray(images[0]).save(tmp_path / "pictures" / "one.png")
    command = ["predict", "classifier.safetensors", "pictures", "--jobs", "1"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["visionshare", *command])

    passed = _followed(main)
    assert capsys.readouterr().out.split()[1] == model.predict(images[:1])[0]
    assert [name for name in passed if name in WALK] == WALK


def test_importing_the_library_imports_nothing_heavy():
    code = "import sys, visionshare; print(*[m for m in sys.modules if '.' not in m])"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    heavy = {"numpy", "numba", "scipy", "sklearn", "cv2", "h5py", "skimage", "matplotlib", "typer"}
    assert not heavy & set(loaded.stdout.split())


def test_files_are_short():
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 500, path


def test_a_class_name_is_used_once():
    names = [
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    assert sorted(set(names)) == sorted(names)


# Names under which the package holds families.
OF_FAMILIES = {"family", "families", "part", "part_", "parts_", "base_", "inner", "source"}


def _private_of_families(path: Path):
    """Yield private attributes that a module reads of what it calls a family."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name.lstrip("_") in OF_FAMILIES and not node.attr.startswith("__"):
                yield f"{name}.{node.attr}, line {node.lineno}"


def _folder(path: Path) -> Path:
    return path.relative_to(PACKAGE / "generators").parent


def test_no_other_package_reads_a_private_attribute_of_a_family():
    for path in PACKAGE.rglob("*.py"):
        if _package(path) != "generators":
            assert not list(_private_of_families(path)), path


def test_a_folder_of_a_family_imports_nothing_private_of_another():
    for path in (PACKAGE / "generators").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                names = [alias.name for alias in node.names if alias.name.startswith("_")]
                same = node.module == f"visionshare.generators.{_folder(path)}"
                assert same or not names, f"{path}: {names}"
        used = {"part_", "parts_", "base_"}
        private = [use for use in _private_of_families(path) if use.split(".")[0] in used]
        assert not private, f"{path}: {private}"


def test_no_kernel_has_threads_of_its_own():
    """They do not survive a fork: ``resources.run_kernel`` divides the work of all kernels."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword):
                own = node.arg == "parallel" or (
                    node.arg == "target" and getattr(node.value, "value", None) == "parallel"
                )
                assert not own, f"{path}, line {node.value.lineno}"
            if isinstance(node, ast.ImportFrom) and node.module == "numba":
                assert "prange" not in [alias.name for alias in node.names], path
