"""Packages: as their ecosystems expect them, built and run where there are tools for it."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from visionshare.classifier import EarlyExit
from visionshare.cli.main import main
from visionshare.errors import InputError
from visionshare.export import c_program, compile_classifier
from visionshare.export.packages import PACKAGES, package, write_package
from visionshare.export.targets import DeviceSources, find_target, measure
from visionshare.export.targets.compiling import WARNINGS, compile_objects

needs_tools = pytest.mark.skipif(
    not all(map(find_spec, ("ziglang", "unicorn", "elftools"))),
    reason="without the packages of the extra edge",
)
EXPECTED = {
    "arduino": ["library.properties", "src/small.c", "examples/SelfTest/SelfTest.ino"],
    "platformio": ["library.json", "src/small.c", "include/small.h"],
    "zephyr": ["zephyr/module.yml", "CMakeLists.txt", "Kconfig", "samples/selftest/prj.conf"],
    "esp-idf": ["CMakeLists.txt", "idf_component.yml", "examples/selftest/main/main.c"],
    "micropython": ["Makefile", "small_module.c", "small.c", "selftest.py"],
    "npm": ["package.json", "index.js", "index.d.ts", "small.wasm", "selftest.js", "index.html"],
}
# The self-test is what the emulated core runs: how many images differ is its first score.
CHECK_HEADER = """#include <stdint.h>
struct check_work { char none; };
int check_classify(const uint8_t *image, struct check_work *work, int32_t *scores);
"""
CHECK = """#include "check.h"
#include "small_selftest.h"
int check_classify(const uint8_t *image, struct check_work *work, int32_t *scores)
{
    (void)image;
    (void)work;
    scores[0] = small_selftest();
    scores[1] = -1;
    return 0;
}
"""
# What a native module of MicroPython uses of its headers.
DYNAMIC_RUNTIME = """#include <stddef.h>
#include <string.h>
typedef void *mp_obj_t;
typedef struct { void *buf; size_t len; } mp_buffer_info_t;
typedef struct { int none; } mp_obj_fun_bc_t;
#define MP_BUFFER_READ 1
#define MP_ERROR_TEXT(text) text
#define MP_DEFINE_CONST_FUN_OBJ_1(name, function) mp_obj_t (*const name)(mp_obj_t) = function
#define MP_DEFINE_CONST_FUN_OBJ_0(name, function) mp_obj_t (*const name)(void) = function
#define MP_DYNRUNTIME_INIT_ENTRY (void)self, (void)count, (void)keys, (void)arguments;
#define MP_DYNRUNTIME_INIT_EXIT return 0;
#define MP_OBJ_FROM_PTR(pointer) ((mp_obj_t)(size_t)(pointer))
#define MP_QSTR_names 1
#define MP_QSTR_classify 2
#define MP_QSTR_selftest 3
#define m_new(type, number) ((type *)allocated(sizeof(type) * (number)))
#define m_del(type, pointer, number) released(pointer, sizeof(type) * (number))
void *allocated(size_t bytes);
void released(void *pointer, size_t bytes);
void mp_get_buffer_raise(mp_obj_t object, mp_buffer_info_t *buffer, int flags);
void mp_raise_ValueError(const char *message);
mp_obj_t mp_obj_new_int(int value);
mp_obj_t mp_obj_new_str(const char *text, size_t length);
mp_obj_t mp_obj_new_tuple(size_t length, const mp_obj_t *values);
void mp_store_global(int name, mp_obj_t value);
mp_obj_t mpy_init(mp_obj_fun_bc_t *self, size_t count, size_t keys, mp_obj_t *arguments);
"""


@pytest.fixture(scope="module", params=["none", "int8"])
def made(request, classifier, images):
    """Return a function that gives a package of a small classifier of floats or whole numbers."""
    model = classifier("patches")
    program = c_program(model, "small", quantize=request.param)

    def make(kind):
        return package(kind, model, program, images[1][:3])

    return make


@needs_tools
@pytest.mark.parametrize("kind", PACKAGES)
def test_files(kind, made, tmp_path):
    paths = write_package(made(kind), tmp_path / "a" / kind)
    found = {str(path.relative_to(tmp_path / "a" / kind)) for path in paths}
    assert set(EXPECTED[kind]) <= found
    # A package replaces an earlier one, and no file of somebody else.
    write_package(made(kind), tmp_path / "a" / kind)
    (tmp_path / "a" / kind / EXPECTED[kind][0]).write_text("mine")
    with pytest.raises(InputError, match="no export"):
        write_package(made(kind), tmp_path / "a" / kind)


@needs_tools
@pytest.mark.parametrize("kind", ["arduino", "esp-idf"])
@pytest.mark.parametrize("wrong", [0, 2])
def test_the_self_test_on_a_core(kind, wrong, made, tmp_path):
    files = made(kind).files
    sources = {path.split("/")[-1]: text for path, text in files.items() if "small" in path}
    lines = sources["small_selftest.c"].splitlines()
    place = next(i for i, line in enumerate(lines) if "int labels[" in line) + 1
    labels = [int(word) for word in lines[place].split(",")]
    labels[:wrong] = [(label + 1) % 4 for label in labels[:wrong]]
    lines[place] = ", ".join(map(str, labels))
    sources |= {"small_selftest.c": "\n".join(lines), "check.h": CHECK_HEADER, "check.c": CHECK}
    check = DeviceSources("check", sources, "uint8", 4, 2, "int32")
    target = find_target("cortex-m4" if kind == "arduino" else "esp32")
    measured = measure(check, target, np.zeros((1, 4), np.uint8))
    assert measured.scores.tolist() == [[wrong, -1]]


def self_test(model, program, images, folder):
    """Return the images of a package, and how many differ in its self-test on this machine."""
    files = package("platformio", model, program, images).files
    for path, text in files.items():
        if path.startswith(("src/", "include/")):
            (folder / path.split("/")[-1]).write_text(text)
    main_of = '#include "small_selftest.h"\nint main(void) { return small_selftest(); }\n'
    (folder / "main.c").write_text(main_of)
    command = ["cc", "main.c", "small.c", "small_selftest.c", "-lm", "-o", "run"]
    subprocess.run(command, cwd=folder, check=True)
    header = files["include/small_selftest.h"]
    number = int(re.search(r"Classify (\d+) stored", header).group(1))
    return number, subprocess.run(["./run"], cwd=folder, check=False).returncode


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler on this machine")
def test_the_self_test_of_images_that_stop_early(stopping, tmp_path):
    model, test = stopping("patches")
    assert (EarlyExit(model).predict(test) != model.predict(test)).any()
    program = c_program(model, "small", early_exit=True)
    assert self_test(model, program, test, tmp_path) == (len(test), 0)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler on this machine")
def test_the_self_test_of_rounded_tables(classifier, images, monkeypatch, tmp_path):
    # Its classes stand so close to each other that rounding changes some.
    model, test = classifier("fourier"), images[1]
    scores = model.decision_function(test)
    model = replace(model, intercept=model.intercept - scores.mean(axis=0, dtype=np.float32))
    program = c_program(model, "small", quantize="int8")
    assert program.reference is None
    compiled = compile_classifier(model, quantize="int8", cache_dir=tmp_path / "cache")
    assert (compiled.predict(test) != model.predict(test)).any()
    assert self_test(model, program, test, tmp_path) == (len(test), 0)
    # Without a compiler that works, the clearest images are taken.
    monkeypatch.setenv("CC", shutil.which("false"))
    number, different = self_test(model, program, test, tmp_path)
    assert 0 < number < len(test)
    assert different == 0


@needs_tools
def test_a_native_module_compiles(made, tmp_path):
    files = dict(made("micropython").files)
    assert "dynruntime.mk" in files["Makefile"]
    (tmp_path / "py").mkdir()
    (tmp_path / "py" / "dynruntime.h").write_text(DYNAMIC_RUNTIME)
    sources = {name: files[name] for name in files if name.endswith((".c", ".h"))}
    device = DeviceSources("small", sources, "uint8", 64, 4, "int32")
    (tmp_path / "build").mkdir()
    objects = compile_objects(
        device, find_target("cortex-m0plus"), tmp_path / "build", flags=[f"-I{tmp_path}", "-Wall"]
    )
    assert len(objects) == 3


@needs_tools
def test_c_has_no_warnings(made, tmp_path):
    for kind in ("platformio", "zephyr"):
        files = made(kind).files
        sources = {
            path.replace("/", "_") if "main" in path else path.split("/")[-1]: text
            for path, text in files.items()
            if path.endswith((".c", ".h")) and "main" not in path
        }
        device = DeviceSources("small", sources, "uint8", 64, 4, "int32")
        (tmp_path / kind).mkdir()
        target = find_target("cortex-m4")
        made_of = compile_objects(device, target, tmp_path / kind, "more-speed", WARNINGS)
        assert len(made_of) == sum(name.endswith(".c") for name in sources) > 1


@needs_tools
@pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine")
def test_npm(made, images, tmp_path):
    folder = tmp_path / "small"
    write_package(made("npm"), folder)
    described = json.loads((folder / "package.json").read_text())
    assert {described["main"], described["types"]} <= {path.name for path in folder.iterdir()}
    command = ["node", "selftest.js"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    # A wrong size is an error; a self-test that fails says so.
    script = (folder / "selftest.js").read_text()
    (folder / "selftest.js").write_text(script.replace("labels[i] ||", "labels[i] + 1 ||"))
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "differ: 3" in done.stdout
    check = 'import { load } from "./index.js"; (await load()).classify(new Uint8Array(5));'
    (folder / "wrong.mjs").write_text(check)
    done = subprocess.run(["node", "wrong.mjs"], cwd=folder, capture_output=True, check=False)
    assert b"RangeError: 5 values; 64 expected" in done.stderr


def test_wrong_arguments(classifier, images):
    model = classifier("patches")
    program = c_program(model)
    for kind, test in (("cargo", images[1]), ("npm", images[1][:0]), ("npm", images[1][:, :4])):
        with pytest.raises(InputError):
            package(kind, model, program, test)


def test_the_command(trained, tmp_path, capsys):
    out = tmp_path / "digits"
    command = ["export", str(trained), "--to", "zephyr", "--out", str(out)]
    capsys.readouterr()
    assert main([*command, "--identifier-prefix", "digits", "--json"]) == 0
    written = json.loads(capsys.readouterr().out)["files"]
    assert str(out / "src" / "digits.c") in written
    assert "CONFIG_DIGITS=y" in (out / "README.md").read_text()
    for wrong in (
        ["--to", "cargo", "--out", str(out)],
        ["--to", "npm", "--out", str(out), "--preparation"],
    ):  # fmt: skip
        assert main(["export", str(trained), *wrong]) == 2
        assert capsys.readouterr().err.startswith("error: --")
