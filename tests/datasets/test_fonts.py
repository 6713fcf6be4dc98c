"""Fonts: which are usable, that no family trains and tests, and that renders are reproducible."""

import shutil

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from visionshare.datasets import Fonts, load_dataset, load_images
from visionshare.datasets.fonts import (
    CAPITALS,
    LETTERS,
    font_family,
    matches,
    matplotlib_fonts,
    usable_fonts,
)
from visionshare.datasets.glyphs import load_fonts, render_sheet, split_fonts
from visionshare.errors import DataError, InputError, RecipeError
from visionshare.recipes import load_recipe

EMBEDDED = {path.stem: path for path in matplotlib_fonts()}
FEW = Fonts(per_class=4, per_class_test=2)


def _names(fonts):
    return {font.path.stem for font in fonts}


def test_symbol_fonts_are_left_out():
    usable = _names(usable_fonts(tuple(EMBEDDED.values()), CAPITALS))
    assert {"DejaVuSans", "DejaVuSerif-Bold", "STIXGeneral", "cmr10", "cmtt10"} <= usable
    # Capitals of cmsy10 are ornaments, cmex10 has brackets there, the others lack letters.
    assert not usable & {"cmsy10", "cmex10", "STIXNonUni", "STIXSizOneSymReg", "DejaVuSansDisplay"}


def test_what_is_no_font_or_a_copy_is_left_out(tmp_path):
    broken, copy = tmp_path / "broken.ttf", tmp_path / "copy.ttf"
    broken.write_bytes(EMBEDDED["cmr10"].read_bytes()[:2000])
    shutil.copy(EMBEDDED["cmr10"], copy)
    paths = [EMBEDDED["cmr10"], EMBEDDED["cmss10"], broken, copy, tmp_path / "none.ttf"]
    assert _names(usable_fonts(paths, "ABC")) == {"cmr10", "cmss10"}
    assert usable_fonts([broken], "ABC") == []


def test_fonts_that_draw_two_characters_alike_are_left_out(tmp_path):
    from fontTools.ttLib import TTFont

    with TTFont(EMBEDDED["cmr10"]) as font:
        for table in font["cmap"].tables:
            if ord("A") in table.cmap:
                table.cmap[ord("B")] = table.cmap[ord("A")]
        font.save(tmp_path / "alike.ttf")
    paths = [EMBEDDED["cmss10"], EMBEDDED["cmtt10"], tmp_path / "alike.ttf"]
    assert _names(usable_fonts(paths, "AB")) == {"cmss10", "cmtt10"}
    assert "alike" in _names(usable_fonts(paths, "AC"))


@pytest.mark.parametrize(
    ("name", "family"),
    [("Lato Semibold", "lato"), ("Noto Serif Display", "noto serif"), ("Black", "black")],
)
def test_weight_and_width_are_no_family(name, family):
    assert font_family(name) == family


def test_patterns():
    assert matches("dejavu sans mono", ["DejaVu*"])
    assert matches("roboto", ["Roboto Condensed"])
    assert not matches("dejavu sans mono", ["dejavu sans"])


@pytest.mark.parametrize("tests", [(), ("dejavu *", "cmr10")])
def test_no_family_trains_and_tests(tests):
    train, test = split_fonts(Fonts(tests=tests))
    assert not {f.family for f in train} & {f.family for f in test}
    if tests:
        expected = {"cmr10", "dejavu sans", "dejavu serif", "dejavu sans mono"}
        assert {f.family for f in test} == expected


def test_families_that_are_left_out_do_neither():
    train, test = split_fonts(Fonts(left_out=("dejavu*",)))
    assert not any(f.family.startswith("dejavu") for f in [*train, *test])


def test_fonts_of_a_folder_join(tmp_path):
    with pytest.raises(DataError, match="no fonts"):
        split_fonts(FEW, tmp_path)
    (tmp_path / "deep").mkdir()
    shutil.copy(EMBEDDED["STIXGeneral"], tmp_path / "deep" / "STIXGeneral.ttf")
    before = split_fonts(FEW)
    # A copy of a font that is there already changes nothing.
    assert list(map(_names, split_fonts(FEW, tmp_path))) == list(map(_names, before))


def test_both_parts_need_a_family():
    with pytest.raises(DataError, match="left to test"):
        split_fonts(Fonts(tests=("no such family",)))
    with pytest.raises(DataError, match="left to train"):
        split_fonts(Fonts(tests=("*",)))


def test_renders_are_the_same_each_time_and_differ_among_themselves():
    loaded = load_fonts("train", FEW)
    assert loaded.images.shape == (4 * 36, 28, 28)
    assert "".join(loaded.classes) == CAPITALS
    assert loaded.images.max(axis=(1, 2)).min() > 200
    assert_array_equal(loaded.images, load_fonts("train", FEW).images)
    assert len({image.tobytes() for image in loaded.images}) == len(loaded)
    other = load_fonts("train", Fonts(per_class=4, seed=1))
    assert (other.images != loaded.images).any()


def test_more_images_begin_with_the_same():
    more = load_fonts("train", Fonts(per_class=6))
    assert_array_equal(more.images[: 4 * 36], load_fonts("train", FEW).images)


def test_small_letters_are_an_option():
    loaded = load_dataset("fonts", "test", fonts=Fonts(characters="letters", per_class_test=1))
    assert ("".join(loaded.classes), len(loaded)) == (LETTERS, 62)


def test_classes_look_like_themselves():
    """A character is nearest to the mean of its own class, mostly, across families."""
    train = load_fonts("train", Fonts(per_class=24))
    test = load_fonts("test", Fonts(per_class_test=6))
    means = [train.images[train.labels == c].mean(axis=0).ravel() for c in range(36)]
    flat = test.images.reshape(len(test), -1).astype(float)
    distances = ((flat[:, None] - np.array(means)) ** 2).sum(axis=2)
    assert (distances.argmin(axis=1) == test.labels).mean() > 0.7


def test_without_deformations_a_sheet_is_nearly_the_clean_font():
    still = Fonts(rotation=0, shear=0, scale=0, elastic=0, points=(20, 20))
    font = next(f for f in split_fonts(still)[0] if f.path.stem == "DejaVuSans")
    sheets = [render_sheet(font, "ABC", still, np.random.default_rng(i)) for i in range(6)]
    mean = np.mean(sheets, axis=0)
    for sheet in sheets:
        assert np.corrcoef(sheet.ravel(), mean.ravel())[0, 1] > 0.9


@pytest.mark.parametrize(
    "settings",
    [
        {"characters": "digitss"}, {"characters": ""}, {"per_class": 0},
        {"points": (20.0, 10.0)}, {"points": (0.1, 10.0)},
        {"points": (12.0,)},
        {"rotation": -1.0}, {"shear": float("nan")}, {"dpi": 2.5},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        Fonts(**settings)


def test_fonts_belong_to_the_data_set_fonts(tmp_path):
    with pytest.raises(DataError, match="digits"):
        load_dataset("digits", "train", fonts=FEW)
    with pytest.raises(DataError, match="rendered"):
        load_images(tmp_path, fonts=FEW)


def test_recipes_say_how_characters_are_rendered():
    recipe = load_recipe("ocr", ["data.fonts.characters=letters", 'data.fonts.tests=["cmr10"]'])
    assert recipe.data.fonts.characters == "letters"
    assert recipe.data.fonts.build().tests == ("cmr10",)
    with pytest.raises(RecipeError, match="Did you mean 'per_class'"):
        load_recipe("ocr", ["data.fonts.per_clas=3"])
    with pytest.raises(RecipeError, match="characters"):
        load_recipe("ocr", ["data.fonts.characters=digitss"])


def test_symbols_other_characters_and_digits_alone():
    """Fonts draw the symbols that they have; families of segments draw digits."""
    settings = Fonts(
        characters="01AB€", others="ΔЖ", segments=("cmr10",), tests=("dejavu sans",),
        per_class=26, per_class_test=2, camera=True,
    )  # fmt: skip
    train = load_fonts("train", settings)
    test = load_fonts("test", settings)
    assert train.classes == ("0", "1", "A", "B", "€", "other")
    counts = np.bincount(train.labels, minlength=6)
    # One family of segments draws each digit three times; Computer Modern has no euro.
    assert counts[0] > counts[2] > counts[4] > 0
    assert np.bincount(test.labels).tolist() == [2, 2, 2, 2, 2, 4]
