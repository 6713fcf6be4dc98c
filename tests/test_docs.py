"""The documents say what is there: decisions, words, links."""

import ast
import importlib
import importlib.util
import re
import shlex
from pathlib import Path

import pytest
import typer

import visionshare
import visionshare.image_classifier
from visionshare.cli.application import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
# Words of before; the glossary and the changelog may say them.
FORMER = re.compile(
    r"\b(strength_max|extra_rounds|sharpness|bound_of|few_of_each|share_of_each|judges|pupils?|"
    r"Straightened|evaluate_columns|whole or not at all|goes on with|begins anew|a alpha)\b"
)


def test_the_index_lists_every_decision_once():
    folder = DOCS / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[(.+)\]\(([\w-]+\.md)\)$", index, flags=re.MULTILINE)
    pages = {page.name for page in folder.glob("*.md")} - {"README.md"}
    assert sorted(name for _, name in listed) == sorted(pages)
    for title, name in listed:
        assert (folder / name).read_text(encoding="utf-8").startswith(f"# {title}\n")


def test_the_api_pages_have_every_public_name():
    """A page names a class or function, or shows a package with all of its names."""
    text = "".join(page.read_text("utf-8") for page in (DOCS / "api").glob("*.md"))
    named = {
        name.rpartition(".")[2] for name in re.findall(r"\.\. auto(?:class|function):: (\S+)", text)
    }
    for package in re.findall(r"\.\. automodule:: (\S+)", text):
        named |= set(importlib.import_module(package).__all__)
    for page in (visionshare, visionshare.image_classifier):
        assert set(page.__all__) <= named


def test_no_two_pages_have_the_same_title():
    titles = [page.read_text(encoding="utf-8").splitlines()[0] for page in DOCS.rglob("*.md")]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)\)", text):
        if not target.startswith(("http:", "https:")):
            assert _source(page.parent / target).exists(), target


def _source(target):
    """Return the file that a page of the gallery is made of; any other file is itself."""
    if target.parent.name != "examples":
        return target
    name = "README.rst" if target.name == "index" else f"{target.name}.py"
    return DOCS / "gallery" / name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_documents_use_the_words_of_the_glossary(page):
    if page.name not in ("glossary.md", "CHANGELOG.md"):
        assert not FORMER.findall(page.read_text(encoding="utf-8"))


def test_the_glossary_defines_each_word_once():
    text = (DOCS / "glossary.md").read_text(encoding="utf-8").split("## Former names")[0]
    rows = re.findall(r"^\| ([^|]+?) \|", text, flags=re.MULTILINE)
    words = [word for row in rows if row != "word" and "---" not in row for word in row.split(", ")]
    assert len(words) == len(set(words))


def _commands(page):
    """Return the words of each call of visionshare in the shell blocks of a page."""
    for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["visionshare"]:
                yield words[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_their_options_exist(page):
    program = typer.main.get_command(app)
    for words in _commands(page):
        command, names = program, list(words)
        while hasattr(command, "commands"):
            command = command.commands[names.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        known |= {option for parameter in command.params for option in parameter.secondary_opts}
        given = {name.split("=")[0] for name in names if name.startswith("--")}
        assert given <= known, words


def _parameters(command):
    for one in getattr(command, "commands", {}).values():
        yield from _parameters(one)
    yield from ((command.name, param.name, param) for param in command.params)


def test_every_parameter_of_every_command_is_explained():
    # In Python 3.10, annotations are easily lost where None is the default.
    found = list(_parameters(typer.main.get_command(app)))
    assert len(found) > 100
    assert [(command, name) for command, name, param in found if not param.help] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_imports_of_python_examples_work(page):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for block in blocks:
        for node in ast.parse(block).body:
            if isinstance(node, ast.Import):
                assert all(importlib.import_module(name.name) for name in node.names)
            elif isinstance(node, ast.ImportFrom):
                if node.module.partition(".")[0] in ("dask", "distributed"):
                    pytest.importorskip(node.module, reason="visionshare[cluster] is not installed")
                module = importlib.import_module(node.module)
                lacking = [name.name for name in node.names if not _has(module, name.name)]
                assert lacking == [], node.module


def _has(module, name):
    """Return whether a module has a name, which a module in it may be that nobody has imported."""
    return (
        hasattr(module, name) or importlib.util.find_spec(f"{module.__name__}.{name}") is not None
    )
