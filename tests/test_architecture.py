"""The floors of the house: a room imports only from below; imports stay cheap."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "visionshare"
FLOORS = {
    "errors": 0, "durable": 0, "fingerprints": 0, "resources": 0, "bundled": 0,
    "tensor_file": 0, "columns": 0, "codegen": 0, "scores": 0,
    "generators": 1, "datasets": 1, "losses": 1, "penalties": 1,
    "store": 2, "classifier": 2, "solvers": 2,
    "search": 3, "apps": 3, "export": 3, "reports": 3,
    "learners": 4, "recipes": 5, "cli": 6, "testing": 6,
}  # fmt: skip
# Floor 0 stands on one rule of its own: everything may report errors and write files.
GROUND = {
    ("resources", "errors"),
    ("columns", "errors"),
    ("columns", "fingerprints"),
    ("columns", "resources"),
    ("codegen", "errors"),
    ("fingerprints", "errors"),
    ("tensor_file", "durable"),
    ("tensor_file", "errors"),
    ("tensor_file", "fingerprints"),
}


def _room(path: Path) -> str:
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
def test_rooms_import_only_from_below(path):
    room = _room(path)
    if room == "__init__":
        return
    for other in _imports(path):
        if other != room and (room, other) not in GROUND:
            assert FLOORS[other] < FLOORS[room], f"{room} imports {other}"
    assert room in FLOORS


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


def test_no_other_room_reads_a_private_attribute_of_a_family():
    for path in PACKAGE.rglob("*.py"):
        if _room(path) != "generators":
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
