"""Packages: as their ecosystems expect them, built and run where there are tools for it."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from itertools import product
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import yaml

from benchmarks.edge.matrix import check_sources
from visionshare.classifier import EarlyExit
from visionshare.cli.main import main
from visionshare.datasets.frames import frame_of_gray
from visionshare.errors import InputError
from visionshare.export import c_program, compile_classifier
from visionshare.export.c.preparation import (
    frame_picture,
    least_margin,
    whole_preprocessing,
    with_preparation,
)
from visionshare.export.packages import PACKAGES, package, write_package
from visionshare.export.targets import DeviceSources, find_target, measure
from visionshare.export.targets.compiling import WARNINGS, compile_objects

needs_tools = pytest.mark.skipif(
    not all(map(find_spec, ("ziglang", "unicorn", "elftools"))),
    reason="without the packages of the extra edge",
)
EXPECTED = {
    "arduino": [
        "library.properties", "src/small.c", "src/small_prepare.c",
        "examples/SelfTest/SelfTest.ino", "examples/Camera/Camera.ino", "LICENSE",
    ],
    "platformio": ["library.json", "src/small.c", "include/small.h"],
    "zephyr": ["zephyr/module.yml", "CMakeLists.txt", "Kconfig", "samples/selftest/prj.conf"],
    "esp-idf": ["CMakeLists.txt", "idf_component.yml", "examples/selftest/main/main.c"],
    "micropython": ["Makefile", "small_module.c", "small.c", "selftest.py"],
    "npm": ["package.json", "index.js", "index.d.ts", "small.wasm", "selftest.js", "index.html"],
}  # fmt: skip
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
#define MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(name, least, most, function) \\
    mp_obj_t (*const name)(size_t, const mp_obj_t *) = function
enum {
    MP_QSTR_prepare = 4, MP_QSTR_GRAY, MP_QSTR_RGB565, MP_QSTR_RGB565_SWAPPED, MP_QSTR_YUYV,
    MP_QSTR_UYVY, MP_QSTR_RGB888
};
typedef ptrdiff_t mp_int_t;
void *m_malloc(size_t bytes);
void m_free(void *pointer);
mp_int_t mp_obj_get_int(mp_obj_t object);
mp_obj_t mp_obj_new_bytes(const void *values, size_t length);
void mp_get_buffer_raise(mp_obj_t object, mp_buffer_info_t *buffer, int flags);
void mp_raise_ValueError(const char *message);
extern const mp_obj_t mp_const_none;
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
    program = with_preparation(model, c_program(model, "small", quantize=request.param))

    return cache(lambda kind: package(kind, model, program, images[1][:3]))


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
@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("arduino", 0), ("arduino", 2), ("esp-idf", 0),
        pytest.param("esp-idf", 2, marks=pytest.mark.exhaustive),
    ],
)  # fmt: skip
def test_the_self_test_on_a_core(kind, wrong, made, tmp_path):
    files = made(kind).files
    sources = {path.split("/")[-1]: text for path, text in files.items() if "small" in path}
    lines = sources["small_selftest.c"].splitlines()
    place = next(i for i, line in enumerate(lines) if "small_labels[" in line) + 1
    labels = [int(word) for word in lines[place].split(",")]
    labels[:wrong] = [(label + 1) % 4 for label in labels[:wrong]]
    lines[place] = ", ".join(map(str, labels))
    # The self-test is what the emulated core runs: how many images differ is its first score.
    check = check_sources(sources | {"small_selftest.c": "\n".join(lines)})
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
    assert len(objects) == 4


@needs_tools
def test_c_has_no_warnings(made, tmp_path):
    compiled = []
    for kind in ("platformio", "zephyr"):
        files = made(kind).files
        sources = {
            path.replace("/", "_") if "main" in path else path.split("/")[-1]: text
            for path, text in files.items()
            if path.endswith((".c", ".h")) and "main" not in path
        }
        assert sum(name.endswith(".c") for name in sources) > 1
        if sources in compiled:
            continue
        compiled.append(sources)
        device = DeviceSources("small", sources, "uint8", 64, 4, "int32")
        (tmp_path / kind).mkdir()
        target = find_target("cortex-m4")
        made_of = compile_objects(device, target, tmp_path / kind, "more-speed", WARNINGS)
        assert len(made_of) == sum(name.endswith(".c") for name in sources)


@needs_tools
@pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine")
def test_npm(made, images, tmp_path):
    folder = tmp_path / "small"
    write_package(made("npm"), folder)
    described = json.loads((folder / "package.json").read_text())
    assert set(described["files"]) <= {path.name for path in folder.iterdir()}
    assert {described["main"], described["types"], "selftest.js"} <= set(described["files"])
    assert "prepare(" in (folder / "README.md").read_text()
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


# What an example uses of Arduino.
ARDUINO = """#pragma once
#include <stddef.h>
#include <stdint.h>
struct Console {
  void begin(long);
  operator bool();
  void print(const char *);
  void println(int);
  void println(const char *);
};
extern Console Serial;
void delay(unsigned long);
"""

# What the examples use of the SDKs of boards with cameras; a frame is that of the test.
BOARDS = {
    "esp32": ["-DARDUINO_ARCH_ESP32"],
    "esp32-jpeg": ["-DARDUINO_ARCH_ESP32", "-DCAMERA_JPEG"],
    "nicla": ["-DARDUINO_NICLA_VISION"],
}
SDK = {
    "esp_camera.h": """#pragma once
enum { ESP_OK, PIXFORMAT_RGB565, PIXFORMAT_JPEG, FRAMESIZE_QVGA };
typedef struct {
  int pin_d0, pin_d1, pin_d2, pin_d3, pin_d4, pin_d5, pin_d6, pin_d7, pin_pwdn, pin_reset, pin_xclk;
  int pin_sccb_sda, pin_sccb_scl, pin_vsync, pin_href, pin_pclk, xclk_freq_hz, pixel_format;
  int jpeg_quality, frame_size, fb_count;
} camera_config_t;
typedef struct { uint8_t *buf; size_t len, width, height; } camera_fb_t;
int esp_camera_init(const camera_config_t *);
camera_fb_t *esp_camera_fb_get();
void esp_camera_fb_return(camera_fb_t *);
""",
    "esp_jpg_decode.h": """#pragma once
typedef enum { JPG_SCALE_NONE } jpg_scale_t;
typedef size_t (*jpg_reader_cb)(void *, size_t, uint8_t *, size_t);
typedef bool (*jpg_writer_cb)(void *, uint16_t, uint16_t, uint16_t, uint16_t, uint8_t *);
int esp_jpg_decode(size_t, jpg_scale_t, jpg_reader_cb, jpg_writer_cb, void *);
""",
    "camera.h": """#pragma once
enum { CAMERA_R320x240, CAMERA_RGB565 };
struct Sensor {};
struct FrameBuffer { uint8_t *getBuffer(); };
struct Camera {
  Camera(Sensor &) {}
  bool begin(int, int, int);
  int grabFrame(FrameBuffer &, int);
};
""",
    "gc2145.h": "#pragma once\nstruct GC2145 : Sensor {};\n",
}
# A decoder that gives a picture in blocks of 16 x 8, and cameras that give the frame.
SKETCH = """#include <stdio.h>
#include <string.h>
#include "Arduino.h"
#include "frame.h"
void Console::begin(long) {}
void Console::println(const char *text) { puts(text); }
Console Serial;
void delay(unsigned long) {}
#include "examples/Camera/Camera.ino"
#ifdef ARDUINO_ARCH_ESP32
static camera_fb_t frame = {(uint8_t *)shown, sizeof(shown), 320, 240};
int esp_camera_init(const camera_config_t *) { return ESP_OK; }
camera_fb_t *esp_camera_fb_get() { return &frame; }
void esp_camera_fb_return(camera_fb_t *) {}
#else
bool Camera::begin(int, int, int) { return true; }
int Camera::grabFrame(FrameBuffer &, int) { return 0; }
uint8_t *FrameBuffer::getBuffer() { return (uint8_t *)shown; }
#endif
#ifdef CAMERA_JPEG
int esp_jpg_decode(size_t, jpg_scale_t, jpg_reader_cb, jpg_writer_cb write, void *) {
  uint8_t block[3 * 16 * 8];
  write(NULL, 0, 0, 320, 240, NULL);
  for (int y = 0; y < 240; y += 8) {
    for (int x = 0; x < 320; x += 16) {
      for (int row = 0; row < 8; row++) {
        memcpy(block + 48 * row, shown + 3 * ((y + row) * 320 + x), 48);
      }
      write(NULL, x, y, 16, 8, block);
    }
  }
  write(NULL, 320, 240, 320, 240, NULL);
  return ESP_OK;
}
#endif
int main() { setup(); loop(); }
"""


COMPILERS = [
    "g++", "avr-g++ -mmcu=atmega2560", "arm-none-eabi-g++ -mcpu=cortex-m0plus -mthumb",
    "arm-none-eabi-g++ -mcpu=cortex-m55 -mthumb", "xtensa-lx106-elf-g++",
]  # fmt: skip
# Examples are the same for floats and for whole numbers.
of_floats = pytest.mark.parametrize(
    "made", ["none", pytest.param("int8", marks=pytest.mark.exhaustive)], indirect=True
)


def compiled_as_cpp(compiler, files, folder, boards):
    """Compile sources of a package of Arduino by pattern, each with each of its flags."""
    command = compiler.split()
    if shutil.which(command[0]) is None:
        pytest.skip(f"without {command[0]}")
    probe = [*command, "-x", "c++", "-E", "-"]
    if subprocess.run(probe, input=b"#include <string.h>", capture_output=True).returncode:
        pytest.skip(f"{command[0]} has no C library")
    write_package(files, folder)
    (folder / "Arduino.h").write_text(ARDUINO)
    flags = ["-std=gnu++11", "-Os", "-Wall", "-Wextra", "-Werror", "-I.", "-Isrc", "-x", "c++"]
    for name, text in SDK.items():
        (folder / name).write_text(text)
    for pattern, variants in boards.items():
        for source, defined in product(sorted(folder.glob(pattern)), variants):
            arduino = ["-include", "Arduino.h"] if source.suffix == ".ino" else []
            made_of = [*command, *flags, *arduino, *defined, "-c", str(source), "-o", "made.o"]
            assert subprocess.run(made_of, cwd=folder, check=False).returncode == 0


@needs_tools
@pytest.mark.parametrize("compiler", COMPILERS)
def test_c_of_arduino_compiles_as_cpp(compiler, made, tmp_path):
    compiled_as_cpp(compiler, made("arduino"), tmp_path, {"src/*.c": [[]]})


@needs_tools
@of_floats
@pytest.mark.parametrize("compiler", COMPILERS)
def test_arduino_examples_compile(compiler, made, tmp_path):
    cameras = [] if "avr" in compiler else BOARDS.values()
    compiled_as_cpp(compiler, made("arduino"), tmp_path, {"examples/*/*.ino": [[], *cameras]})


@needs_tools
@of_floats
@pytest.mark.skipif(shutil.which("g++") is None, reason="without g++")
@pytest.mark.parametrize("board", BOARDS)
def test_examples_of_cameras_say_the_class(board, made, classifier, tmp_path):
    write_package(made("arduino"), tmp_path)
    for name, text in {**SDK, "Arduino.h": ARDUINO}.items():
        (tmp_path / name).write_text(text)
    # 1) a frame of every board shows the same
    gray = np.full((240, 320), 220, np.uint8)
    gray[60:180, 140:170] = gray[150:180, 140:230] = 40
    kind = "rgb888" if "jpeg" in board else "rgb565-swapped"
    frame = frame_of_gray(gray, kind)
    numbers = ",".join(map(str, frame.ravel()))
    (tmp_path / "frame.h").write_text(f"static const uint8_t shown[] = {{{numbers}}};")
    (tmp_path / "main.cpp").write_text(SKETCH)
    flags = ["-std=gnu++11", "-fpermissive", "-w", "-I.", "-Isrc", *BOARDS[board]]
    sources = ["main.cpp", *(f"src/{path.name}" for path in tmp_path.glob("src/*.c"))]
    subprocess.run(["g++", *flags, *sources, "-o", "run"], cwd=tmp_path, check=True)
    said = subprocess.run(["./run"], cwd=tmp_path, check=True, capture_output=True, text=True)
    # 2) what Python says of it
    model = classifier("patches")
    raster = whole_preprocessing(model).apply(frame_picture(model, frame, kind), model.image_shape)
    scores = model.decision_function(raster[None])[0]
    second, best = np.sort(scores)[-2:]
    clear = best - second > 1.5 * least_margin(model)
    name = f"{model.classes_[scores.argmax()]}\n"
    assert said.stdout == name or (not clear and said.stdout == "nothing\n")


@needs_tools
def test_the_example_of_openmv(made, monkeypatch):
    script = made("micropython").files["examples/Camera.py"]
    asked = []

    def prepare(frame, height, width, form):
        asked.append((len(frame), height, width, form))
        return b"image" if len(asked) > 1 else None

    frame = SimpleNamespace(
        bytearray=lambda: bytearray(320 * 240), height=lambda: 240, width=lambda: 320
    )
    others = dict.fromkeys(("reset", "set_pixformat", "set_framesize", "skip_frames"), Mock())
    sensor = SimpleNamespace(GRAYSCALE=1, QVGA=2, snapshot=lambda: frame, **others)
    small = SimpleNamespace(prepare=prepare, names=["a", "b"], GRAY=0, classify=lambda image: 1)
    monkeypatch.setitem(sys.modules, "sensor", sensor)
    monkeypatch.setitem(sys.modules, "small", small)
    space = {}
    exec(script.replace("while True:", "for _ in range(0):"), space)
    assert [space["look"](), space["look"]()] == [None, "b"]
    assert asked == [(76800, 240, 320, 0)] * 2


@pytest.mark.skipif(shutil.which("nm") is None, reason="without nm")
def test_every_exported_symbol_has_the_prefix(made, tmp_path):
    files = made("platformio").files
    for path, text in files.items():
        if path.startswith(("src/", "include/")):
            (tmp_path / path.split("/")[-1]).write_text(text)
    names = []
    for source in sorted(tmp_path.glob("*.c")):
        subprocess.run(["cc", "-c", source.name, "-o", "made.o"], cwd=tmp_path, check=True)
        listed = subprocess.run(
            ["nm", "-g", "--defined-only", "made.o"], cwd=tmp_path, capture_output=True, text=True
        )
        names += [line.split()[-1].lstrip("_") for line in listed.stdout.splitlines()]
    assert len(names) > 8
    assert all(name.startswith("small_") for name in names)


@pytest.mark.skipif("MPY_DIR" not in os.environ, reason="without MPY_DIR, MicroPython's sources")
def test_a_native_module_runs(made, tmp_path):
    write_package(made("micropython"), tmp_path)
    sources = os.environ["MPY_DIR"]
    made_of = ["make", f"MPY_DIR={sources}", "ARCH=x64", "CROSS=", f"PYTHON={sys.executable}"]
    subprocess.run(made_of, cwd=tmp_path, check=True)
    run = f"{sources}/ports/unix/build-standard/micropython"
    (tmp_path / "frame.py").write_text(
        "import small\n"
        "image = small.prepare(bytes(range(200)) * 3, 20, 15, small.YUYV)\n"
        "print(len(image), small.names[small.classify(image)] in small.names)\n"
    )
    for script, said in (("selftest.py", "differ: 0"), ("frame.py", "64 True")):
        done = subprocess.run([run, script], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout


def test_manifests_are_valid(made, tmp_path):
    """What arduino-lint, PlatformIO, Zephyr and the component manager ask for."""
    lines = made("arduino").files["library.properties"].splitlines()
    properties = dict(line.split("=", 1) for line in lines if "=" in line)
    needed = {"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url"}
    assert needed | {"architectures", "includes"} <= set(properties)
    assert re.fullmatch(r"\d+\.\d+\.\d+", properties["version"])
    assert not properties["paragraph"].startswith(properties["sentence"])
    assert yaml.safe_load(made("zephyr").files["zephyr/module.yml"])["build"]["cmake"] == "."
    assert yaml.safe_load(made("esp-idf").files["idf_component.yml"])["dependencies"]["idf"]
    manifest = made("platformio").files["library.json"]
    assert {"name", "version"} <= set(json.loads(manifest))
    if find_spec("platformio"):
        from platformio.package.manifest.parser import LibraryJsonManifestParser
        from platformio.package.manifest.schema import ManifestSchema

        ManifestSchema().load_manifest(LibraryJsonManifestParser(manifest).as_dict())


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
        ["--to", "onnx", "--out", str(out), "--preparation"],
    ):  # fmt: skip
        assert main(["export", str(trained), *wrong]) == 2
        assert capsys.readouterr().err.startswith("error: --")
