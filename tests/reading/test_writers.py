"""Text, JSON, hOCR and picture say the same; the command writes them."""

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from scripts.reproduce.rendering import render_page
from visionshare.cli.main import main
from visionshare.reading import Block, Box, Character, Line, Page, Word, read_page
from visionshare.reading.writers import as_hocr, as_json, as_picture, as_values

XHTML = "{http://www.w3.org/1999/xhtml}"
LINES = ["TWO WORDS", "AND 42"]


def _of_class(root, name):
    return [e for e in root.iter() if e.get("class") == name]


def _box(element):
    title = element.get("title")
    return [int(v) for v in re.search(r"bbox(?:es)? (\d+ \d+ \d+ \d+)", title)[1].split()]


@pytest.fixture
def scan(tmp_path, font):
    path = tmp_path / "scan one.png"
    Image.fromarray(render_page(LINES, font, 18)).save(path)
    return path


def test_hocr_is_xml_whose_boxes_are_those_of_json(reader, font):
    page = read_page(reader, render_page(LINES, font, 18))
    values = json.loads(as_json(page, "a & <b>.png"))
    root = ET.fromstring(as_hocr(page, "a & <b>.png").encode())
    (element,) = _of_class(root, "ocr_page")
    assert 'image "a & <b>.png"' in element.get("title")
    assert _box(element) == [0, 0, page.width, page.height]
    lines = [line for block in values["blocks"] for line in block["lines"]]
    words = [word for line in lines for word in line["words"]]
    characters = [c for word in words for c in word["characters"]]
    for name, entries in (
        ("ocr_carea", values["blocks"]), ("ocr_par", values["blocks"]), ("ocr_line", lines),
        ("ocrx_word", words), ("ocrx_cinfo", characters),
    ):  # fmt: skip
        assert [_box(e) for e in _of_class(root, name)] == [e["box"] for e in entries]
    texts = ["".join(e.itertext()) for e in _of_class(root, "ocrx_word")]
    assert texts == [word["text"] for word in words] == ["TWO", "WORDS", "AND", "42"]
    sure = [
        int(re.search(r"x_wconf (\d+)", e.get("title"))[1]) for e in _of_class(root, "ocrx_word")
    ]
    assert sure == [round(100 * word.confidence) for word in page.words]
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids)) == 1 + 2 * len(page.blocks) + len(lines) + len(words)


def test_strange_texts_are_still_xml():
    texts = ["<&>", "\x00", '"', "ﬁ", "\ud800", "𝔄"]
    characters = tuple(Character(t, Box(0, 0, 1, 1), 0.5) for t in texts)
    page = Page(4, 4, (Block((Line((Word(characters),)),)),))
    root = ET.fromstring(as_hocr(page, '"\x01.png').encode())
    assert "".join(_of_class(root, "ocrx_word")[0].itertext()) == '<&>"ﬁ𝔄'


def test_an_empty_page_is_written_too():
    page = Page(7, 5)
    assert as_values(page)["blocks"] == []
    root = ET.fromstring(as_hocr(page).encode())
    assert len(_of_class(root, "ocr_page")) == 1
    assert not _of_class(root, "ocr_line")
    assert as_picture(np.zeros((5, 7), np.uint8), page).shape == (5, 7, 3)


def test_the_picture_shows_boxes_around_the_ink_and_leaves_it(reader, font):
    image = render_page(["T   T"], font, 18)
    page = read_page(reader, image)
    picture = as_picture(image, page)
    box = page.characters[0].box
    assert (picture[box.top - 1, box.left : box.right] == (0, 158, 115)).all()
    inside = slice(box.top, box.bottom), slice(box.left, box.right)
    assert (picture[inside][..., 0] == image[inside]).all()


def test_the_command_says_the_text(reader_file, scan, capsys):
    assert main(["read", "--classifier", str(reader_file), str(scan), "--jobs", "1"]) == 0
    assert capsys.readouterr().out == "TWO WORDS\nAND 42\n"


def test_the_command_writes_files(reader_file, scan, tmp_path, capsys):
    out = tmp_path / "read"
    options = ["--out", str(out), "--format", "json"]
    assert main(["read", "--classifier", str(reader_file), str(scan), *options, "--jobs", "1"]) == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["text"] for one in said] == ["TWO WORDS", "AND 42"]
    assert {one["file"] for one in said} == {str(scan)}
    assert all(0.5 < one["confidence"] <= 1 for one in said)
    assert (out / "scan one.txt").read_text() == "TWO WORDS\nAND 42\n"
    page = json.loads((out / "scan one.json").read_text())
    assert (page["text"], page["image"]) == ("TWO WORDS\nAND 42", str(scan))
    assert "ocr_page" in (out / "scan one.hocr").read_text()
    with Image.open(out / "scan one.png") as one, Image.open(scan) as other:
        assert (one.size, one.mode) == (other.size, "RGB")


def test_an_empty_scan_is_an_empty_text(reader_file, tmp_path, capsys):
    Image.new("L", (100, 80), 255).save(tmp_path / "empty.png")
    out = tmp_path / "read"
    assert (
        main(
            [
                "read",
                "--classifier",
                str(reader_file),
                str(tmp_path / "empty.png"),
                "--out",
                str(out),
            ]
        )
        == 0
    )
    assert (out / "empty.txt").read_text() == ""


def test_transparent_paper_is_white(reader_file, scan, tmp_path, capsys):
    with Image.open(scan) as opened:
        gray = np.asarray(opened)
    clear = np.zeros((*gray.shape, 4), np.uint8)
    clear[..., 3] = 255 - gray
    Image.fromarray(clear).save(tmp_path / "clear.png")
    assert main(["read", "--classifier", str(reader_file), str(tmp_path / "clear.png")]) == 0
    assert capsys.readouterr().out == "TWO WORDS\nAND 42\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "read", "SCAN"], "several pages named"),
        (["--jobs", "0"], "--jobs"),
    ],
)
def test_bad_options_are_one_line(reader_file, scan, tmp_path, capsys, options, message):
    options = [str(scan) if option == "SCAN" else option for option in options]
    assert main(["read", "--classifier", str(reader_file), str(scan), *options]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert message in said
    assert said.count("\n") == 1


def test_broken_and_giant_files_are_refused(reader_file, tmp_path, capsys):
    broken = tmp_path / "broken.png"
    Image.new("L", (200, 200), 255).save(broken)
    broken.write_bytes(broken.read_bytes()[:60])
    assert main(["read", "--classifier", str(reader_file), str(broken)]) == 2
    assert "cannot be read as an image" in capsys.readouterr().err
    giant = tmp_path / "giant.png"
    Image.new("1", (9000, 9000), 1).save(giant)
    assert main(["read", "--classifier", str(reader_file), str(giant)]) == 2
    assert "too many" in capsys.readouterr().err
    assert main(["read", "--classifier", str(reader_file), str(tmp_path / "none.png")]) == 2
    assert main(["read", "--classifier", str(broken), str(broken)]) == 2


def test_a_reader_is_trained_and_reads(scan, tmp_path, capsys):
    """The two commands of docs/reading.md, on a small scale."""
    out = tmp_path / "ocr"
    changes = [
        "data.fonts.system=false", "data.fonts.per_class=10", "data.fonts.per_class_test=2",
        "features.parameters.n_templates=20", "learner.rounds=8",
    ]  # fmt: skip
    settings = [part for change in changes for part in ("--set", change)]
    assert main(["train", "ocr", "--out", str(out), "--jobs", "1", *settings]) == 0
    capsys.readouterr()
    assert main(["read", "--classifier", str(out), str(scan)]) == 0
    said = capsys.readouterr().out
    # Eight features know no more than a few letters, but the words are where they are.
    assert [len(line.split()) for line in said.splitlines()] == [2, 2]


def test_pages_replace_their_own_kind_alone(reader_file, scan, tmp_path, capsys):
    call = ["read", "--classifier", str(reader_file), str(scan), "--jobs", "1", "--out"]
    picture = scan.read_bytes()
    assert main([*call, str(tmp_path)]) == 2
    assert "which the command reads" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.glob("scan*")) == ["scan one.png"]
    assert scan.read_bytes() == picture
    out = tmp_path / "read"
    for _ in range(2):
        assert main([*call, str(out)]) == 0
    # Stopped after the first of its files.
    for end in (".txt", ".hocr", ".png"):
        (out / f"scan one{end}").unlink()
    assert main([*call, str(out)]) == 0
    for end in (".txt", ".json", ".hocr", ".png"):
        file = out / f"scan one{end}"
        ours = file.read_bytes()
        file.write_bytes(b"TWO W0RDS, corrected by hand\n")
        capsys.readouterr()
        assert main([*call, str(out)]) == 2
        assert f"scan one{end}, which this command did not write" in capsys.readouterr().err
        assert file.read_bytes() == b"TWO W0RDS, corrected by hand\n"
        file.write_bytes(ours)
