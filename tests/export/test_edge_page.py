"""The C of the page of cores compiles with what is exported."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from visionshare import load
from visionshare.export import c_program, write_program
from visionshare.export.c.preparation import with_preparation

PAGE = Path(__file__).parents[2] / "docs" / "edge.md"
# What the page takes for granted around its snippets.
AROUND = """#include <stddef.h>
#include "classifier_prepare.h"
enum {{ NOTHING = -1, UNKNOWN = -2 }};
static const uint8_t *pixels;
static uint8_t line[640];
static struct classifier_preparation preparation;
static struct classifier_work work;
static classifier_pixel image[CLASSIFIER_PIXELS];
static classifier_score scores[CLASSIFIER_CLASSES];
int read_line(uint8_t *line);
int page(const uint8_t *blob, size_t size);
int page(const uint8_t *blob, size_t size)
{{
    int label = 0;
    {snippet}
    return label;
}}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler on this machine")
def test_snippets_compile(tmp_path):
    snippets = re.findall(r"^```c\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(snippets) == 5
    model = load("mnist-10k")
    for number, snippet in enumerate(snippets):
        folder = tmp_path / str(number)
        blob = "classifier_open" in snippet
        write_program(with_preparation(model, c_program(model, blob=blob)), folder)
        (folder / "page.c").write_text(AROUND.format(snippet=re.sub("#include.*\n", "", snippet)))
        command = ["cc", "-std=c99", "-Wall", "-Werror", "-DCLASSIFIER_IN_PLACE", "-fsyntax-only"]
        unused = ["-Wno-unused-variable", "-Wno-unused-parameter"]
        subprocess.run([*command, *unused, "page.c"], cwd=folder, check=True)
