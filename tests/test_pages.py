"""Pages of results: their prose is in Markdown templates, and the stored pages have it."""

import ast
import importlib.util
import json
import re
import sys
from argparse import Namespace
from pathlib import Path
from types import ModuleType

import jinja2
import numpy as np
import pytest
from jinja2 import meta, nodes
from numpy.testing import assert_allclose, assert_array_equal

from scripts.reproduce import all as all_pages
from scripts.reproduce import (
    brodatz,
    brodatz_page,
    mnist,
    mnist_steps,
    moved_filters,
    regression_boosting,
    sparse_peers,
)
from scripts.reproduce.results import (
    PAGES,
    RESULTS,
    arguments,
    keep_runs,
    render,
    table,
    templates,
    write_page,
)
from visionshare.classifier import CompactClassifier
from visionshare.recipes import load_recipe, train
from visionshare.recipes.pools import read_pool

ROOT = Path(__file__).parents[1]
NAMES = sorted(str(p.relative_to(PAGES)).removesuffix(".md.j2") for p in PAGES.rglob("*.md.j2"))
# Pages of which there is more than one: the stored pages that a template stands for.
COMPARISONS = (
    "peers-deformed",
    "peers-fashion-deformed",
    "peers-cifar10",
    "peers-more",
    "peers-gates",
)
FRONTS = ("front-mnist", "front-fashion-mnist", "front-cifar10")
STORED = {
    "front": FRONTS,
    "front/cost": FRONTS,
    "front/ahead": FRONTS[:1],
    "front/nobody": FRONTS,
    "front/cifar10": ("front-cifar10",),
    "support_vectors": ("support_vectors-adult", "support_vectors-spambase"),
    "peers": COMPARISONS,
    "peers/picture": COMPARISONS,
    "peers/elsewhere": ("peers-deformed", "peers-cifar10"),
    "peers/most-accurate": ("peers-deformed", "peers-fashion-deformed"),
    "peers/none-better": COMPARISONS,
    "peers/none-more-accurate": ("peers-more", "peers-gates"),
}  # fmt: skip
# Parts that no stored page has, and settings of other classifiers, which are in the JSON.
NOT_STORED = {
    "sparsification/digits", "peers/better",
    *(f"peers/{part}" for part in (
        "boosted_trees", "logic_gates", "neighbors", "network", "oriented_gradients", "ours",
        "ours-training", "random_convolutions", "scattering", "svm", "tsetlin",
    )),
}  # fmt: skip
SCRIPTS = [*(ROOT / "scripts" / "reproduce").glob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]


def _tree(name):
    return templates().parse((PAGES / f"{name}.md.j2").read_text(encoding="utf-8"))


def _figures(name):
    """Return the names of figures of a template."""
    return meta.find_undeclared_variables(_tree(name))


def _squeezed(text):
    return " ".join(text.split())


def _prose(name):
    """Return the template's own words, in order."""
    parts = [node.data for node in _tree(name).find_all(nodes.TemplateData)]
    return [part for part in map(_squeezed, parts) if part]


def _calls():
    """Return each rendered template with the names of the figures that it gets, and where."""
    for path in SCRIPTS:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(getattr(node, "func", None), "id", "")
            if name not in ("render", "write_page") or path.name == "results.py":
                continue
            page = node.args[1 if name == "write_page" else 0]
            figures = {keyword.arg for keyword in node.keywords}
            yield path.name, page, figures | ({"machine"} if name == "write_page" else set())


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_names_of_figures_and_no_logic(name):
    tree = _tree(name)
    assert {type(node) for node in tree.body} <= {nodes.Output}
    figures = {n: f"<{n}>" for n in meta.find_undeclared_variables(tree)}
    text = render(name, **figures)
    for figure in figures.values():
        assert figure in text
    for missing in figures:
        with pytest.raises(jinja2.UndefinedError, match=missing):
            render(name, **{n: f for n, f in figures.items() if n != missing})


def test_every_page_is_rendered_with_exactly_its_figures():
    rendered = set()
    for script, page, figures in _calls():
        if not isinstance(page, ast.Constant):
            # A choice among parts without figures.
            assert not figures, script
            continue
        rendered.add(page.value)
        assert figures == _figures(page.value), (script, page.value)
    with_figures = {n for n in NAMES if _figures(n)}
    assert with_figures <= rendered


@pytest.mark.parametrize("name", [n for n in NAMES if "/without-" not in n and n not in NOT_STORED])
def test_stored_pages_have_the_prose_of_their_template(name):
    for stored in STORED.get(name, (name.split("/")[0],)):
        text = _squeezed((RESULTS / f"{stored}.md").read_text(encoding="utf-8"))
        start = 0
        for part in _prose(name):
            assert part in text[start:], (stored, part)
            start = text.index(part, start) + len(part)


@pytest.mark.parametrize("page", sorted(RESULTS.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_of_results_is_read_in_a_minute(page):
    """The first table stands after two sentences or three; the words of the page are few."""
    lines = page.read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    assert len(" ".join(lines[1:first]).split()) <= 120
    words = [line for line in lines if not line.startswith(("|", "    ", "![", "#"))]
    assert len(" ".join(words).split()) <= 330


def _texts(tree):
    """Return the strings of a module that are no docstrings, f-strings without their values."""
    inside, docstrings = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
        elif isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            docstrings |= {id(getattr(node.body[0], "value", None))}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield " ".join(p.value for p in node.values if isinstance(p, ast.Constant))
        elif isinstance(node, ast.Constant) and id(node) not in inside | docstrings:
            yield str(node.value)


def test_scripts_have_no_paragraphs_of_prose():
    """A string of a script is a label, a table's heading, a setting, code or one short sentence."""
    for path in SCRIPTS:
        for text in _texts(ast.parse(path.read_text(encoding="utf-8"))):
            words = re.findall(r"[A-Za-z]{2,}", text)
            code = " = " in text or text.startswith("#ifndef")
            assert len(words) <= 20 or code, (path.name, text)


def test_writing_a_page(tmp_path, capsys):
    write_page(tmp_path, "fashion-mnist", pipelines=table(["a", "b"], [[1, 2.5]]), remark="")
    text = (tmp_path / "fashion-mnist.md").read_text(encoding="utf-8")
    assert "| a | b |\n|---|---|\n| 1 | 2.5 |" in text
    assert "\n\n\n" not in text
    assert text.rstrip().splitlines()[-1].startswith("Measured on ")
    assert capsys.readouterr().out.strip() == text.strip()


def test_the_page_of_mnist_is_made_of_the_runs_that_are_there(tmp_path):
    metrics = {"test_error_rate": 0.01, "seconds": {"data": 2.0}, "features": 3, "macs": 5}
    metrics |= {"train_images": 7, "peak_memory": 2**30}
    for folder in (tmp_path / "mnist-0", tmp_path / "mnist-1"):
        folder.mkdir(parents=True)
        (folder / "metrics.json").write_text(json.dumps(metrics))
    for dataset in mnist.DATASETS:
        mnist.write(Namespace(dataset=dataset, runs=tmp_path, out=tmp_path, remark="A remark."))
        text = (tmp_path / f"{dataset}.md").read_text(encoding="utf-8")
        assert "| 1.00 ± 0.00 (1.00, 1.00) | 3 | 5 | 7 | data 2 |" in text
        assert "A remark." in text
    assert "{{" not in text


def test_the_page_of_brodatz(tmp_path):
    run = brodatz.Run(np.array([1, 10, 90]), np.array([50.0, 80, 90]), np.array([0.1, 1, 5]))
    names = ("learned", "selected", "fixed")
    results = {
        "scores": {"learned": {0.1: 80.0}, "fixed": {0.1: 70.0}},
        "n": 500,
        "runs": {name: [run, run] for name in (*names, "selected, one solve")},
        "grids": {16: [run, run]},
        "sizes": {500: {name: [run, run] for name in names}},
        "gaps": {g: {name: [run] for name in names[:2]} for g in (0.3, 0.0)},
    }
    stored = json.loads(json.dumps(brodatz.as_values(results)))
    settings = {"draws": 59, "pool": 3000, "counts": (10, 20), "alpha": 0.2}
    measured = {"one digitization": brodatz.from_values(stored)}
    brodatz_page.write(tmp_path, measured, settings)
    text = (tmp_path / "brodatz.md").read_text(encoding="utf-8")
    assert "| learned | 80.00 ± 0.00 | 80.00 ± 0.00 | 90 | 90.00 ± 0.00 | 5.0 |" in text
    assert "`gap_tol=0.3`: 90, 90 filters, 90.0, 90.0 %, 5, 5 s; `gap_tol=0`: 90, 90 f" in text
    assert (tmp_path / "brodatz.png").is_file()


def test_the_page_of_few_inputs_counts_who_errs_less(tmp_path):
    figures = {"ShareBoost": (10.0, 1.0), "forward": (9.0, 2.0), "trees": (12.0, 8.0)}
    methods = dict(zip(sparse_peers.METHODS, [*figures.values(), (10.0, 1.0)], strict=True))
    found = [
        sparse_peers.Run("letter", method, budget, seed, 1.0, budget, error + seed, seconds)
        for method, (error, seconds) in methods.items()
        for budget in sparse_peers.BUDGETS
        for seed in (0, 1)
    ]
    ahead, faster = sparse_peers.finding(found)
    assert "(scikit-learn) in 0 of 3 (-1.0 points on average)" in ahead
    assert "(skglm), refitted in 3 of 3 (+2.0 points on average)" in ahead
    assert faster == "2.0, 8.0, 1.0"
    assert "| letter | 10.5 ± 0.7 (1.00 s) |" in sparse_peers.errors(found, 5)
    sparse_peers.draw(found, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").is_file()


def test_steps_of_mnist_keep_the_runs_of_seeds_that_are_not_asked_for(tmp_path):
    options = Namespace(
        images=None, rounds=305, templates=1000, copies=5, seeds=1, out=tmp_path, runs=tmp_path
    )
    runs = [
        mnist_steps.Figures(
            "printed", seed, 60_000, 60 + seed, 10_000, 305, 10, {"learning": 2.0}, "a1"
        )
        for seed in (0, 2)
    ]
    content = {"size": mnist_steps.size_of(options), "copies": 5, "plain": runs, "deformed": runs}
    keep_runs(tmp_path, "mnist_steps", content)
    mnist_steps.write(options)
    found = json.loads((tmp_path / "mnist_steps.json").read_text(encoding="utf-8"))["runs"]
    assert [one["seed"] for one in found["plain"]] == [0, 2]
    assert [one["test_errors"] for one in found["deformed"]] == [60, 62]
    assert "(0.60, 0.62)" in (tmp_path / "mnist_steps.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("copies", [0, 5])
@pytest.mark.parametrize("step", mnist_steps.STEPS, ids=lambda step: step.name)
def test_a_step_of_mnist_has_a_pool_of_the_templates_asked_for(step, copies):
    options = Namespace(images=None, rounds=20, templates=30)
    recipe = mnist_steps.recipe_of(step, 1, options, copies)
    family = read_pool(recipe.features, 1)
    patches = family.layers[-1].family if step.pool == "deslanted-patches" else family
    assert (patches.n_templates, recipe.learner.rounds) == (30, 20)
    assert (recipe.fine_tuning is not None, recipe.deformations is not None) == (
        bool(step.chosen), copies > 0
    )  # fmt: skip
    assert recipe.learner.search == ("screened" if step.searches_copies else "exhaustive")


def _step_errors(name, *errors, images=60_000):
    return [
        mnist_steps.Figures(name, seed, images, count, 10_000, 305, 10, {"learning": 2.0}, "a1b2c3")
        for seed, count in enumerate(errors)
    ]


def test_a_step_of_mnist_says_what_it_takes_off_the_row_above_or_those_without_copies():
    found = _step_errors("printed", 80, 60) + _step_errors("tuned", 70, 40)
    first, second = mnist_steps.rows(found)
    assert first[1:3] == ["0.70 ± 0.14 (0.80, 0.60)", ""]
    assert second[0] == "and fine-tuning"
    assert second[1:3] == ["0.55 ± 0.21 (0.70, 0.40)", "0.15 ± 0.07"]
    ((text, error, less, *_),) = mnist_steps.rows(
        _step_errors("tuned", 50, 30, images=360_000), found
    )
    assert (text, error, less) == ("fine-tuning", "0.40 ± 0.14 (0.50, 0.30)", "0.15 ± 0.07")
    alone = _step_errors("printed-tuned", 50, 40)
    *_, last = mnist_steps.rows(found + alone, found)
    assert last[0] == "ShareBoost as printed, and fine-tuning alone"
    known = [one._replace(errors_at={"75": 110, "266": 90}) for one in found[:2]]
    assert mnist_steps.rows_after([*known, *found[2:]]) == [
        [mnist_steps.STEPS[0].text, "1.10 ± 0.00 (1.10, 1.10)", "0.90 ± 0.00 (0.90, 0.90)"]
    ]
    # Runs of fewer features than the paper's know the first alone.
    short = [one._replace(errors_at={"75": 110}) for one in found[:2]]
    assert mnist_steps.rows_after(short)[0][1:] == ["1.10 ± 0.00 (1.10, 1.10)", "–"]
    # Less than the first row's 0.80 and 0.60, not than the row above; there is none without copies.
    assert last[2:4] == ["", "0.25 ± 0.07"]


def test_a_run_of_mnist_steps_that_the_page_has_is_not_run_again(tmp_path):
    out, runs = tmp_path / "page", tmp_path / "runs"
    options = Namespace(
        images=None, rounds=305, templates=1000, copies=5, runs=runs, out=out, seeds=3
    )
    printed, tuned = mnist_steps.STEPS[0], mnist_steps.STEPS[3]
    found = _step_errors("printed", 80, 60)
    runs = {"size": "all-305-1000", "copies": 5, "plain": found, "deformed": []}
    keep_runs(out, "mnist_steps", runs)
    assert mnist_steps.figures(printed, 1, options) == found[1]
    assert mnist_steps.figures(printed, 2, options) is None
    assert mnist_steps.figures(tuned, 0, options, copies=5) is None
    # Those with copies stay where none are asked for.
    runs["deformed"] = _step_errors("tuned", 50, images=360_000)
    keep_runs(out, "mnist_steps", runs)
    options.copies = 0
    mnist_steps.write(options)
    assert len(json.loads((out / "mnist_steps.json").read_text("utf-8"))["runs"]["deformed"]) == 1
    # Neither is a run of another size one of them.
    options.rounds = 300
    assert mnist_steps.figures(printed, 1, options) is None


@pytest.mark.exhaustive
def test_fine_tuning_a_run_of_mnist_steps_is_the_whole_recipe_without_its_search(tmp_path):
    digits = ["data.limit=200", "learner.rounds=3", "features.parameters.n_templates=20"]
    whole = load_recipe("digits", [*digits, "fine_tuning.epochs=1", "fine_tuning.rate=1e-3"])
    chosen = whole.model_copy(update={"fine_tuning": None})
    expected = train(whole, tmp_path / "whole").classifier
    train(chosen, tmp_path / "chosen")
    options = Namespace(data=None, jobs=1)
    mnist_steps.learn_again(whole, tmp_path / "tuned", tmp_path / "chosen", options)
    for file in ("classifier.safetensors", "metrics.json", "report.html"):
        assert (tmp_path / "tuned" / file).is_file()
    tuned = CompactClassifier.load(tmp_path / "tuned" / "classifier.safetensors")
    assert_array_equal(tuned.weights, expected.weights)
    assert tuned.metadata == expected.metadata


def test_weights_of_mnist_steps_learned_again_on_the_same_images_are_those_of_the_search(tmp_path):
    digits = ["data.limit=200", "learner.rounds=3", "features.parameters.n_templates=20"]
    recipe = load_recipe("digits", [*digits, "store.dtype=float32"])
    recipe = recipe.model_copy(update={"fine_tuning": None})
    expected = train(recipe, tmp_path / "chosen").classifier
    options = Namespace(data=None, jobs=1)
    mnist_steps.learn_again(recipe, tmp_path / "again", tmp_path / "chosen", options)
    again = CompactClassifier.load(tmp_path / "again" / "classifier.safetensors")
    # Both refits end where a step promises less than a millionth of the objective.
    assert_allclose(again.path[-1].loss, expected.path[-1].loss, rtol=1e-5)
    assert_allclose(again.weights, expected.weights, atol=0.02 * np.abs(expected.weights).max())


OF_FIGURES = {page.stem for page in RESULTS.glob("*.md")} - {"README", "index"}


@pytest.mark.parametrize("page", sorted(OF_FIGURES))
def test_a_page_of_results_has_its_command_commit_and_raw_runs(page):
    text = (RESULTS / f"{page}.md").read_text(encoding="utf-8")
    said = re.search(r"Commit [0-9a-f]{10}: `python -m ([\w.]+) .*`", text)
    assert said, "no commit and no command"
    assert importlib.util.find_spec(said[1]) is not None
    files = [RESULTS / f"{page}.json", *(RESULTS / page).glob("*.json")]
    kept = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()]
    assert kept
    assert all(kept)
    if said[1].startswith("scripts.reproduce."):
        assert kept[0]["runs"]


def _rows_of_papers():
    """Return the cells of the rows about the papers."""
    text = (RESULTS / "README.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in rows if row[0] != "in the paper"]


@pytest.mark.parametrize("row", _rows_of_papers(), ids=lambda row: row[0])
def test_a_claim_of_a_paper_has_figures_a_verdict_and_a_command(row):
    _, printed, ours, seeds, verdict, command = row
    assert verdict in ("reproduced", "reproduced in part", "refuted")
    assert printed
    assert ours
    assert seeds != "–"
    words, *files = re.search(r"`([^`]+)`", command).group(1).split()
    if words == "pytest":
        assert all((ROOT / file).exists() for file in files)
    else:
        assert importlib.util.find_spec(f"scripts.reproduce.{words}")


def test_one_command_makes_every_page_of_the_papers():
    made = {page.name for page in all_pages.PAGES}
    linked = set()
    for row in _rows_of_papers():
        linked |= set(re.findall(r"\((\S+)\.md\)", row[-1]))
    assert linked <= made


def test_a_run_of_all_pages_goes_on_where_it_was_stopped(tmp_path, monkeypatch, capsys):
    pages = all_pages.Page("uci", 0, reads_data=False), all_pages.Page("no_script", 0)
    monkeypatch.setattr(all_pages, "PAGES", pages)
    monkeypatch.setattr("sys.argv", ["all", "--data", "data", "--quick", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="failed"):
        all_pages.main()
    assert "No module" in (tmp_path / "logs" / "no_script.txt").read_text(encoding="utf-8")
    monkeypatch.setattr(all_pages, "PAGES", pages[:1])
    capsys.readouterr()
    with pytest.raises(SystemExit, match="failed"):
        all_pages.main()
    assert not capsys.readouterr().out.startswith("uci")


def test_the_smooth_norm_of_boosting_has_its_proximal_operator():
    norm, starts = regression_boosting.SmoothNorm(), np.arange(3)
    W, step = np.array([[3.0], [-1.0], [0.2]]), 2.0
    found = norm.prox(W, starts, step)
    for change in (1e-3, -1e-3):
        near = [
            step * norm.value(U, starts) + 0.5 * np.sum((U - W) ** 2)
            for U in (found, found + change * np.eye(3)[:, :1])
        ]
        assert near[0] < near[1]
    assert norm.norms(W, starts).sum() == pytest.approx(norm.value(W, starts))
    # Where the gradient of the loss is what moved W, the point is optimal.
    assert_allclose(norm.distance(found, found - W, starts, step), 0, atol=1e-12)


def test_ratios_of_filters_are_to_the_lower_of_both_accuracies():
    pool = brodatz.Run(np.array([1, 2]), np.array([80.0, 91.0]), np.array([4.0, 5.0]))
    drawn = brodatz.Run(np.array([1, 2]), np.array([85.0, 90.0]), np.array([0.5, 1.0]))
    assert moved_filters.ratios([pool], [drawn]) == [5.0]
    assert moved_filters.ratios([drawn], [pool]) == [0.2]


def test_a_quick_run_sets_a_scripts_constants_where_it_has_them_from(monkeypatch):
    script, source, other = (ModuleType(f"scripts.reproduce.{n}") for n in ("a", "b", "c"))
    script.SIZES = source.SIZES = (1, 2, 3)
    # Another constant of that name stays; one that only another script has is set there.
    other.SIZES, other.FOLDS = (4, 5), 5
    script.QUICK = {"SIZES": (1,), "FOLDS": 2}
    monkeypatch.setitem(sys.modules, "__main__", script)
    for module in (source, other):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    options = arguments("").parse_args(["--data", "x", "--quick"])
    assert (options.quick, options.seeds) == (True, 1)
    assert (script.SIZES, source.SIZES, other.SIZES, other.FOLDS) == ((1,), (1,), (4, 5), 2)


_QUICK = [p.stem for p in SCRIPTS if "\nQUICK" in p.read_text("utf-8") and "reproduce" in p.parts]


@pytest.mark.parametrize("name", _QUICK)
def test_constants_of_quick_runs_are_constants_of_the_script_or_of_those_it_uses(name):
    script = importlib.import_module(f"scripts.reproduce.{name}")
    used = {getattr(value, "__module__", None) for value in vars(script).values()}
    modules = [script, *vars(script).values(), *(sys.modules.get(one) for one in used if one)]
    for constant in script.QUICK:
        assert any(hasattr(module, constant) for module in modules), constant
