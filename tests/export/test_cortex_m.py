"""Exported C on a Cortex-M4, compiled with warnings as errors and run in QEMU."""

import shutil
import subprocess

import numpy as np
import pytest

from visionshare.export import c_program

FLAGS = ["-mcpu=cortex-m4", "-mthumb", "-Os", "-std=c99", "-pedantic", "-Wall", "-Wextra",
         "-Werror"]  # fmt: skip
MAIN = """#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "classifier.h"
extern void _start(void);
__attribute__((section(".vectors"), used)) static const uintptr_t vectors[2] = {
    0x20010000u, (uintptr_t)_start
};
static const classifier_pixel images[] = {%s};
static struct classifier_work work;
int main(void)
{
    unsigned i, k;
    for (i = 0; i < sizeof images / sizeof images[0]; i += CLASSIFIER_PIXELS) {
        classifier_score scores[CLASSIFIER_CLASSES];
        classifier_scores(images + i, &work, scores);
        for (k = 0; k < CLASSIFIER_CLASSES; k++) {
            union { float score; uint32_t bits; } number;
#ifdef CLASSIFIER_SCORE_SCALE
            number.score = (float)scores[k] * CLASSIFIER_SCORE_SCALE;
#else
            number.score = scores[k];
#endif
            printf("%%lu ", (unsigned long)number.bits);
        }
    }
    exit(0);
}
"""


@pytest.mark.parametrize(("kind", "quantize"), [("patches", "none"), ("patches", "int8"),
                                                ("union", "none")])  # fmt: skip
def test_scores_in_qemu(kind, quantize, classifier, images, tmp_path):
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} on this machine")
    model, test = classifier(kind), images[1][:6]
    program = c_program(model, quantize=quantize)
    for name, text in program.files.items():
        (tmp_path / name).write_text(text, encoding="ascii")
    (tmp_path / "main.c").write_text(MAIN % ", ".join(map(str, test.ravel())))
    source, target = tmp_path / "classifier.c", tmp_path / "classifier.o"
    compiled = subprocess.run(
        ["arm-none-eabi-gcc", *FLAGS, "-c", str(source), "-o", str(target)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert compiled.returncode == 0, compiled.stderr
    linked = subprocess.run(
        ["arm-none-eabi-gcc", *FLAGS[:3], str(tmp_path / "main.c"), str(target), "-lm",
         "--specs=rdimon.specs", "-Wl,--section-start=.vectors=0", "-o", str(tmp_path / "run")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert linked.returncode == 0, linked.stderr
    printed = subprocess.run(
        ["qemu-system-arm", "-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial",
         "none", "-semihosting", "-kernel", str(tmp_path / "run")],
        capture_output=True, text=True, check=True, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    scores = np.array(printed.stdout.split(), np.uint32).view(np.float32).reshape(len(test), -1)
    expected = model.decision_function(test)
    tolerance = 1e-5 if quantize == "none" else 0.05
    assert np.abs(scores - expected).max() <= tolerance * np.abs(expected).max()
