"""Read pages in ten fonts that taught nothing, beside tesseract; and Chars74K's good images.

Writes docs/results/ocr.md and a picture:

    python -m scripts.reproduce.ocr --data DIR

The fonts that test are Debian's (fonts-liberation, -lato, -roboto, -noto-core, -open-sans,
-cantarell, -inconsolata, -ebgaramond, -urw-base35), as are those that train beside matplotlib's
(-crosextra-caladea, -comfortaa, -croscore, -dejavu, -firacode, -freefont-ttf, -gfs-didot, -hack,
-junicode, -linuxlibertine, -lobstertwo, -quicksand, -texgyre); DIR holds chars74k.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scripts.reproduce.ocr_characters import photographs
from scripts.reproduce.rendering import render_page
from scripts.reproduce.results import arguments, keep_runs, render, stopwatch, table, write_page
from visionshare import CompactClassifier, load
from visionshare.datasets.fonts import CAPITALS, find_fonts, system_font_folders
from visionshare.datasets.glyphs import Fonts, split_fonts
from visionshare.reading import read_page
from visionshare.reading.writers import as_picture
from visionshare.recipes import load_recipe, train

# The families that test, named before anything was read, each with the file that is read, and
# with the families of the same drawings, which do not train either.
TESTS = {
    "liberation sans": ("LiberationSans-Regular.ttf", ["arimo"]),
    "liberation serif": ("LiberationSerif-Regular.ttf", ["tinos"]),
    "lato": ("Lato-Regular.ttf", ["carlito"]),
    "roboto": ("Roboto-Regular.ttf", []),
    "open sans": ("OpenSans-Regular.ttf", ["noto sans*", "noto traditional*"]),
    "noto serif": ("NotoSerif-Regular.ttf", ["noto serif *"]),
    "cantarell": ("Cantarell-Regular.otf", []),
    "inconsolata": ("Inconsolata.otf", []),
    "eb garamond": ("EBGaramond12-Regular.otf", []),
    "urw bookman": ("URWBookman-Light.otf", ["tex gyre bonum"]),
}
SAME = [family for _, (_, same) in TESTS.items() for family in same]
# Validation families, which choose settings: all others train meanwhile.
VALIDATION = {
    "caladea": "Caladea-Regular.ttf",
    "nimbus mono ps": "NimbusMonoPS-Regular.otf",
    "p052": "P052-Roman.otf",
    "urw gothic": "URWGothic-Book.otf",
    "gfs didot": "GFSDidot.otf",
    "dejavu serif": "DejaVuSerif.ttf",
    "fira code": "FiraCode-Regular.ttf",
    "nimbus sans": "NimbusSans-Regular.otf",
}
VALIDATION_SAME = [
    "tex gyre cursor", "freemono", "tex gyre pagella", "tex gyre adventor", "freesans",
    "tex gyre heros",
]  # fmt: skip
POINTS = (12, 16, 20, 24)
LINES, WORDS = 12, 6
SMALL = {"data.fonts.per_class": 200, "learner.rounds": 40}
TRIED: dict[str, dict[str, Any]] = {
    "as in the pipeline": {},
    "no deformations": {
        "data.fonts.rotation": 0.0, "data.fonts.shear": 0.0, "data.fonts.scale": 0.0,
        "data.fonts.elastic": 0.0,
    },
    "twice the shear and the elastic displacements": {
        "data.fonts.shear": 0.16, "data.fonts.elastic": 2.0,
    },
    "matplotlib's fonts alone": {"data.fonts.system": False},
}  # fmt: skip
# Settings of the classifier whose pages are compared.
LEARNED: dict[str, Any] = {}
# Constants of --quick, with fonts that matplotlib has.
QUICK = {
    "TESTS": {"dejavu sans": ("DejaVuSans.ttf", [])}, "SAME": [], "POINTS": (16,),
    "VALIDATION": {"dejavu serif": "DejaVuSerif.ttf"}, "VALIDATION_SAME": [],
    "SMALL": {"data.fonts.per_class": 40, "learner.rounds": 20},
    "LEARNED": {"data.fonts.per_class": 40, "learner.rounds": 20},
    "TRIED": {"as in the pipeline": {}},
}  # fmt: skip


@dataclass
class Tally:
    """Edits and characters of some pages."""

    characters: int = 0
    edits: int = 0
    edits_alike: int = 0
    without_spaces: int = 0
    edits_without_spaces: int = 0

    def add(self, truth: str, read: str) -> None:
        """Count one page."""
        truth, read = " ".join(truth.split()), " ".join(read.split())
        self.characters += len(truth)
        self.edits += edit_distance(truth, read)
        self.edits_alike += edit_distance(alike(truth), alike(read))
        self.without_spaces += len(truth.replace(" ", ""))
        self.edits_without_spaces += edit_distance(
            alike(truth).replace(" ", ""), alike(read).replace(" ", "")
        )

    def rates(self) -> list[str]:
        """Return the three accuracies in percent: alike, apart, alike without spaces."""
        values = (
            (self.edits_alike, self.characters),
            (self.edits, self.characters),
            (self.edits_without_spaces, self.without_spaces),
        )
        return [f"{100 * (1 - edits / n):.2f}" for edits, n in values]


def alike(text: str) -> str:
    """Return a text with O and 0, I and 1 counted as one each."""
    return text.replace("O", "0").replace("I", "1")


def edit_distance(one: str, other: str) -> int:
    """Return how many characters are to be put in, taken out or replaced."""
    before = np.arange(len(other) + 1)
    letters = np.array(list(other))
    for i, letter in enumerate(one, 1):
        now = np.empty_like(before)
        now[0] = i
        now[1:] = np.minimum(before[1:] + 1, before[:-1] + (letters != letter))
        # What is put in counts from the left: a running minimum, less the way walked.
        steps = np.arange(len(now))
        before = np.minimum.accumulate(now - steps) + steps
    return int(before[-1])


def page_text(rng: np.random.Generator) -> list[str]:
    """Return lines of words: half of capitals, three in ten of digits, the others of both."""
    digits, capitals = CAPITALS[:10], CAPITALS[10:]
    lines = []
    for _ in range(LINES):
        words = []
        for kind in rng.random(WORDS):
            letters = capitals if kind < 0.5 else digits if kind < 0.8 else CAPITALS
            words.append("".join(rng.choice(list(letters), int(rng.integers(2, 9)))))
        lines.append(" ".join(words))
    return lines


def font_files(names: dict[str, str]) -> dict[str, Path]:
    """Return where the fonts are; raise SystemExit with the names of those that are missing."""
    import matplotlib

    own = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    paths = {p.name: p for folder in (own, *system_font_folders()) for p in find_fonts(folder)}
    missing = [f"{family} ({file})" for family, file in names.items() if file not in paths]
    if missing:
        raise SystemExit(f"these fonts are not on this machine: {', '.join(missing)}")
    return {family: paths[file] for family, file in names.items()}


def learn(settings: dict[str, Any], out: Path, jobs: int) -> CompactClassifier:
    """Return the pipeline's classifier with settings changed."""
    import json

    changes = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    return train(load_recipe("ocr", changes), out, jobs=jobs).classifier


def read_all(
    model: CompactClassifier, fonts: dict[str, Path], seed: int, points: tuple[int, ...]
) -> tuple[Tally, list[tuple[str, int, str, np.ndarray, str]]]:
    """Return the tally of pages in fonts and sizes, and each: font, size, truth, image, read."""
    total, pages = Tally(), []
    for f, (family, path) in enumerate(fonts.items()):
        for size in points:
            lines = page_text(np.random.default_rng([seed, f, size]))
            page = render_page(lines, path, size)
            text = read_page(model, page).text
            total.add("\n".join(lines), text)
            pages.append((family, size, "\n".join(lines), page, text))
    return total, pages


def choose(jobs: int) -> list[list[Any]]:
    """Return the rows of what was tried, evaluated on families that did not train."""
    fonts = font_files(VALIDATION)
    settings = {
        "data.fonts.tests": list(VALIDATION),
        "data.fonts.left_out": [*TESTS, *SAME, *VALIDATION_SAME],
        **SMALL,
    }
    rows = []
    for name, changes in TRIED.items():
        with tempfile.TemporaryDirectory() as out:
            model = learn({**settings, **changes}, Path(out), jobs)
        total, _ = read_all(model, fonts, 1, POINTS)
        rows.append([name, *total.rates()])
        print(rows[-1], flush=True)
    return rows


def tesseract(page: np.ndarray, whitelist: bool) -> str:
    """Return what tesseract reads."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.png"
        Image.fromarray(page).save(file, dpi=(200, 200))
        command = ["tesseract", str(file), "-", "--psm", "6", "--dpi", "200", "-l", "eng"]
        if whitelist:
            # Without a blank among them tesseract writes no spaces.
            command += ["-c", f"tessedit_char_whitelist= {CAPITALS}"]
        process = subprocess.run(command, capture_output=True, text=True, check=True)
    return process.stdout


def compared(pages: list[tuple[str, int, str, np.ndarray, str]]) -> dict[str, dict[Any, Tally]]:
    """Return tallies of every reader by family, by size, and of all."""
    readers: dict[str, Any] = {"visionshare": None}
    if shutil.which("tesseract"):
        readers |= {"tesseract, 36 characters allowed": True, "tesseract": False}
    tallies: dict[str, dict[Any, Tally]] = {name: {} for name in readers}
    for family, size, truth, page, ours in pages:
        for name, whitelist in readers.items():
            text = ours if whitelist is None else tesseract(page, whitelist)
            for key in (family, size, "all"):
                tallies[name].setdefault(key, Tally()).add(truth, text)
    return tallies


def main() -> None:
    """Choose settings, train, read the test fonts once, and write the page."""
    parser = arguments(__doc__)
    parser.add_argument("--classifier", type=Path, help="read with this one, learned by --keep")
    parser.add_argument("--keep", type=Path, help="folder for the classifier; alone: learn only")
    options = parser.parse_args()
    settings: dict[str, Any] = {"data.fonts.tests": list(TESTS), "data.fonts.left_out": SAME}
    settings |= LEARNED
    fonts = font_files({family: file for family, (file, _) in TESTS.items()})
    if options.classifier is None:
        with tempfile.TemporaryDirectory() as out:
            model = learn(settings, options.keep or Path(out), options.jobs)
        if options.keep is not None:
            return
    else:
        model = load(options.classifier)
        fonts_of_model = model.metadata["recipe"]["data"]["fonts"]
        if fonts_of_model["tests"] != list(TESTS) or fonts_of_model["left_out"] != SAME:
            raise SystemExit(f"{options.classifier}: learned from other fonts")
    tried = choose(options.jobs)
    with stopwatch() as seconds:
        _, pages = read_all(model, fonts, 0, POINTS)
    readers = compared(pages)
    draw(options.out / "images" / "ocr.png", model, fonts)
    pictures, figures = photographs(options.data, options.jobs, options.quick)
    runs = {"tried": tried, "readers": readers, "seconds": seconds[0], "photographs": figures}
    keep_runs(options.out, "ocr", runs)
    write(options, model, tried, readers, seconds[0], pictures)


def draw(path: Path, model: CompactClassifier, fonts: dict[str, Path]) -> None:
    """Write a page of the test fonts, turned, with the boxes of what was read."""
    import cv2
    from PIL import Image

    rng = np.random.default_rng(5)
    lines = [render_page(page_text(rng)[:1], path_, 16, margin=0.12) for path_ in fonts.values()]
    width = max(page.shape[1] for page in lines)
    page = np.concatenate([
        np.pad(p, ((0, 0), (40, 40 + width - p.shape[1])), constant_values=255) for p in lines
    ])  # fmt: skip
    height, width = page.shape
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), -1.5, 1.0)
    page = cv2.warpAffine(page, turn, (width, height), borderValue=255)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.fromarray(as_picture(page, read_page(model, page)))
    picture.resize((width * 3 // 4, height * 3 // 4), Image.Resampling.LANCZOS).save(path)


def write(
    options: Any,
    model: CompactClassifier,
    tried: list[list[Any]],
    readers: dict[str, dict[Any, Tally]],
    seconds: float,
    pictures: str,
) -> None:
    """Write the page."""
    recipe = model.metadata["recipe"]
    fonts = dict(recipe["data"]["fonts"])
    training, _ = split_fonts(
        Fonts(system=True, tests=tuple(fonts["tests"]), left_out=tuple(fonts["left_out"]))
    )
    families = sorted({font.family for font in training})
    rates = ["O/0 and I/1 alike", "apart", "alike, without spaces"]
    names = list(readers)
    by_font = [
        [font, *(" / ".join(map(str, readers[name][font].rates()[:2])) for name in names)]
        for font in TESTS
    ]
    all_pages = table(["reader", *rates], [[m, *readers[m]["all"].rates()] for m in names])
    if len(names) == 1:
        all_pages = render("ocr/without-tesseract", readers=all_pages)
    write_page(
        options.out,
        "ocr",
        points=", ".join(map(str, POINTS)),
        n_characters=readers["visionshare"]["all"].characters,
        n_features=model.n_features,
        macs=f"{model.macs:,}",
        per_class=fonts["per_class"],
        n_fonts=len(training),
        n_families=len(families),
        all_pages=all_pages,
        seconds=f"{seconds:.1f}",
        by_font=table(["alike / apart", *names], by_font),
        photographs=pictures,
    )


if __name__ == "__main__":
    main()
