"""No compiler warns of the C of any family, where it optimizes: some see more of a program then."""

import shutil
import subprocess
from importlib.util import find_spec

import pytest

from tests.export.test_c_families import QUANTIZED
from tests.generators.examples import family_examples
from visionshare.export import c_program
from visionshare.export.targets.compiling import WARNINGS
from visionshare.generators import family_names

# One of each family, and those with a program of their own: all would take a minute.
KINDS = [
    *(next(iter(family_examples(name))) for name in family_names() if name != "pretrained"),
    "network-of-few", "color",
]  # fmt: skip


@pytest.fixture(scope="module")
def sources(classifier, tmp_path_factory):
    """Return a folder with programs of every family, in floats, in bytes and in vectors."""
    folder = tmp_path_factory.mktemp("programs")
    for number, kind in enumerate(KINDS):
        for quantize, vectors in (("none", False), ("none", True), ("int8", False)):
            if quantize == "int8" and kind not in QUANTIZED:
                continue
            name = f"program{number}_{quantize}"
            name += "_pc" if vectors else ""
            program = c_program(classifier(kind), name, None, quantize, True, vectors=vectors)
            for file in (f"{name}.c", f"{name}.h"):
                (folder / file).write_text(program.files[file], encoding="ascii")
            plain = folder / f"{name.removesuffix('_pc')}.c"
            text = plain.read_text(encoding="ascii").replace(plain.stem, name)
            if vectors and text == program.files[f"{name}.c"]:
                # Most families have one program for all machines.
                (folder / f"{name}.c").unlink()
    return folder


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on this machine")
@pytest.mark.parametrize("level", [pytest.param("-O2", marks=pytest.mark.exhaustive), "-O3"])
def test_gcc_is_silent(level, sources):
    _compile(["gcc", level, "-c"], sources)


@pytest.mark.skipif(find_spec("ziglang") is None, reason="without the extra edge")
def test_clang_is_silent(sources):
    """Without an optimizer: clang looks at a program before it."""
    from visionshare.export.targets.compiling import zig

    _compile([*zig(), "cc", "-O0", "-fno-sanitize=undefined", "-c"], sources)


def _compile(command, folder):
    files = sorted(path.name for path in folder.glob("*.c"))
    assert len(files) > len(KINDS)
    made = subprocess.run(
        [*command, *WARNINGS, *files], cwd=folder, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr[:4000]
