"""The matrix of packages, architectures and compilers."""

import shutil
import subprocess
from importlib.util import find_spec

import pytest

from benchmarks.edge import matrix, qemu
from visionshare import load


@pytest.mark.skipif(
    not all(map(find_spec, ("ziglang", "unicorn", "elftools"))) or shutil.which("gcc") is None,
    reason="without the packages of the extra edge, or gcc",
)
def test_rows_say_what_ran():
    others = {"x86-64": "gcc", "nowhere": "no-such-compiler"}
    core, here, nowhere = matrix.matrix(load("mnist-4k"), ["cortex-m0plus"], others)
    assert (core.compiler, core.state, here.state) == ("clang", "passes", "passes")
    assert 3000 < core.flash < 6000
    assert core.instructions > 10**5
    assert nowhere.state == "not here: no no-such-compiler"
    assert matrix.of_package("arduino", core) == "passes"
    assert matrix.of_package("npm", core) == matrix.of_package("esp-idf", core) == "–"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="without gcc")
def test_a_self_test_that_fails_is_told():
    files = {
        "small_selftest.h": "int small_selftest(void);\n",
        "small_selftest.c": '#include "small_selftest.h"\nint small_selftest(void) { return 1; }\n',
    }
    assert matrix.built(files, "x86-64", "gcc").state == "fails"
    files["small_selftest.c"] += "int unused(int one) { return 1; }\n"
    assert matrix.built(files, "x86-64", "gcc").state.startswith("fails: ")


COUNTED = """#include "small_selftest.h"
static volatile int sum;
static int table[4] = {1, 2, 3, 4};
int small_selftest(void)
{
    int i;
    for (i = 0; i < 40000; i++) sum += table[i & 3];
    return sum == 100000 ? 7 : 9;
}
"""


@pytest.mark.parametrize("architecture", qemu.BOARDS)
def test_qemu_runs_and_counts(architecture, tmp_path):
    compiler = matrix.OTHERS[architecture].split()
    emulators = {"Xtensa lx106": "qemu-system-xtensa", "rv32imc": "qemu-system-riscv32"}
    emulator = emulators.get(architecture, "qemu-system-arm")
    if shutil.which(compiler[0]) is None or shutil.which(emulator) is None:
        pytest.skip(f"without {compiler[0]} or {emulator}")
    (tmp_path / "small_selftest.h").write_text("int small_selftest(void);\n")
    (tmp_path / "t.c").write_text(COUNTED)
    subprocess.run([*compiler, "-Os", "-c", "t.c"], cwd=tmp_path, check=True)
    found, instructions = qemu.run_in_qemu(
        architecture, compiler, ["t.o"], "small_selftest", tmp_path
    )
    assert found == 7
    # Loops have as many instructions each time round, by the core.
    each, more = divmod(instructions, 40000)
    assert 7 <= each <= 12
    assert more < 100
    assert qemu.run_in_qemu("nowhere", compiler, [], "none", tmp_path) is None
