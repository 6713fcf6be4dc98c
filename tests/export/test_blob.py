"""Tables as data: replaced while the program stays, and refused where they are damaged."""

import shutil
import subprocess

import numpy as np
import pytest

from visionshare import CompactClassifier, Deslant, Network, Templates
from visionshare.cli.main import main
from visionshare.datasets import load_dataset
from visionshare.errors import InputError
from visionshare.export import c_program, write_program
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.tuning import quantized

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="without a C compiler")
MAIN = """#include <stdio.h>
#include "small.h"
int main(int count, char **arguments)
{
    static uint32_t memory[4096];
    static uint8_t image[SMALL_PIXELS];
    static struct small_work work;
    int32_t scores[SMALL_CLASSES];
    FILE *file = fopen(arguments[1], "rb");
    const size_t size = fread(memory, 1, sizeof memory, file);
    int k;

    work.tables = small_open((const uint8_t *)memory, size);
    if (count != 3 || work.tables == NULL) {
        return 3;
    }
    file = fopen(arguments[2], "rb");
    while (fread(image, 1, SMALL_PIXELS, file) == SMALL_PIXELS) {
        small_classify(image, &work, scores);
        for (k = 0; k < SMALL_CLASSES; k++) {
            printf("%d ", (int)scores[k]);
        }
    }
    return 0;
}
"""


def _model(images, seed, bits=4, n=6):
    layers = [Deslant(), Templates(3, 3, pool=2, n_patches=300), Templates(n, 2, n_patches=300)]
    family = quantized(Network(layers, random_state=seed).fit(images), images, Bits(bits, bits))
    weights = np.random.default_rng(seed).integers(-7, 8, (10, family.n_features_))
    return CompactClassifier(family, weights, np.zeros(10), np.arange(10))


@needs_compiler
@pytest.mark.parametrize("bits", [8, 4, 2])
def test_a_program_takes_the_tables_of_a_later_training(bits, images, tmp_path):
    train, test = images
    models = [_model(train, 0, bits), _model(255 - train, 1, bits)]
    programs = [c_program(model, "small", blob=True) for model in models]
    assert programs[0].files["small.c"] == programs[1].files["small.c"]
    assert programs[0].blob != programs[1].blob
    write_program(programs[0], tmp_path)
    write_program(programs[0], tmp_path)
    assert (tmp_path / "small.blob").read_bytes() == programs[0].blob
    (tmp_path / "main.c").write_text(MAIN)
    flags = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-DSMALL_ONE_BY_ONE=1"]
    made_of = ["cc", *flags, "main.c", "small.c", "small_blob.c", "-o", "run"]
    subprocess.run(made_of, cwd=tmp_path, check=True)
    (tmp_path / "images").write_bytes(test.tobytes())

    def scores(blob):
        (tmp_path / "blob").write_bytes(blob)
        done = subprocess.run(
            ["./run", "blob", "images"], cwd=tmp_path, capture_output=True, text=True
        )
        return None if done.returncode == 3 else np.array(done.stdout.split(), int).reshape(-1, 10)

    # 1) Each blob gives the scores of its classifier.
    for model, program in zip(models, programs, strict=True):
        assert scores(program.blob).tolist() == program.reference(test).tolist()
        assert np.array_equal(scores(program.blob).argmax(axis=1), model.predict(test))
    # 2) What is damaged, cut, or of other layers is refused.
    blob = programs[0].blob
    for place in (0, 6, 9, 17, 21, 24, len(blob) - 1):
        damaged = bytearray(blob)
        damaged[place] ^= 16
        assert scores(bytes(damaged)) is None
    assert scores(blob[:-4]) is None
    assert scores(b"") is None
    assert scores(c_program(_model(train, 0, bits, n=7), "small", blob=True).blob) is None


def test_other_families_have_no_blob(classifier):
    with pytest.raises(InputError, match="blob"):
        c_program(classifier("patches"), quantize="int8", blob=True)
    with pytest.raises(InputError, match="blob"):
        c_program(classifier("pixels"), blob=True)


def test_the_command(images, tmp_path, capsys):
    _model(load_dataset("digits", "train").images[:200], 0).save(tmp_path / "small.safetensors")
    arguments = ["export", str(tmp_path / "small.safetensors"), "--blob", "--out"]
    assert main([*arguments, str(tmp_path / "c")]) == 0
    assert (tmp_path / "c" / "classifier.blob").read_bytes().startswith(b"VSBLOB")
    assert main([*arguments, str(tmp_path / "p"), "--to", "arduino"]) == 2
    assert "--blob" in capsys.readouterr().err
