"""The matrix of packages, architectures and compilers."""

import shutil
from importlib.util import find_spec

import pytest

from benchmarks.edge import matrix
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
