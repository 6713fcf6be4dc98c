"""Pages of results: their prose is in Markdown templates, and the stored pages have it."""

import ast
import re
from pathlib import Path

import jinja2
import pytest
from jinja2 import meta, nodes

from scripts.reproduce.results import PAGES, RESULTS, render, table, templates, write_page

ROOT = Path(__file__).parents[1]
NAMES = sorted(str(p.relative_to(PAGES)).removesuffix(".md.j2") for p in PAGES.rglob("*.md.j2"))
# Pages of which there is more than one: the stored pages that a template stands for.
STORED = {"peers": ("peers", "peers-fashion-mnist")}
# A problem that the stored page was written without.
NOT_STORED = {"sparsification/digits"}
SCRIPTS = [*(ROOT / "scripts" / "reproduce").glob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]


def _tree(name):
    return templates().parse((PAGES / f"{name}.md.j2").read_text(encoding="utf-8"))


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
        assert figures == meta.find_undeclared_variables(_tree(page.value)), (script, page.value)
    with_figures = {n for n in NAMES if meta.find_undeclared_variables(_tree(n))}
    assert with_figures <= rendered


@pytest.mark.parametrize("name", [n for n in NAMES if "/without-" not in n and n not in NOT_STORED])
def test_stored_pages_have_the_prose_of_their_template(name):
    page = name.split("/")[0]
    for stored in STORED.get(page, (page,)):
        text = _squeezed((RESULTS / f"{stored}.md").read_text(encoding="utf-8"))
        start = 0
        for part in _prose(name):
            assert part in text[start:], (stored, part)
            start = text.index(part, start) + len(part)


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
    """A string of a script is a label, a table's heading, a setting or one short sentence."""
    for path in SCRIPTS:
        for text in _texts(ast.parse(path.read_text(encoding="utf-8"))):
            words = re.findall(r"[A-Za-z]{2,}", text)
            assert len(words) <= 20 or " = " in text, (path.name, text)


def test_writing_a_page(tmp_path, capsys):
    write_page(tmp_path, "fashion-mnist", pipelines=table(["a", "b"], [[1, 2.5]]), remark="")
    text = (tmp_path / "fashion-mnist.md").read_text(encoding="utf-8")
    assert "| a | b |\n|---|---|\n| 1 | 2.5 |" in text
    assert "\n\n\n" not in text
    assert text.rstrip().splitlines()[-1].startswith("Measured on ")
    assert capsys.readouterr().out.strip() == text.strip()
