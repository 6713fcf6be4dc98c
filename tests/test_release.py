"""What a release is made by: workflows, container, classifiers and notes agree with the package."""

import re
import shlex
import sys
from pathlib import Path

import pytest
import typer
import yaml

import visionshare
from visionshare.cli.application import app

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOLDER = ROOT / ".github" / "workflows"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no clone")


def _workflow(name):
    return yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))


def _classified(prefix):
    return {line.removeprefix(prefix) for line in PROJECT["classifiers"] if line.startswith(prefix)}


def _steps(name):
    return [step for job in _workflow(name)["jobs"].values() for step in job["steps"]]


def test_tests_run_on_every_version_and_system_that_is_promised():
    matrix = _workflow("tests")["jobs"]["tests"]["strategy"]["matrix"]
    versions = {v for v in _classified("Programming Language :: Python :: ") if "." in v}
    assert set(matrix["python"]) == versions
    assert min(versions, key=lambda v: int(v[2:])) == PROJECT["requires-python"].removeprefix(">=")
    assert len(matrix["os"]) == len(_classified("Operating System :: ")) == 3
    tried = _workflow("release")["jobs"]["try"]["strategy"]["matrix"]
    assert set(tried["python"]) <= versions
    assert tried["os"] == matrix["os"]


def test_only_the_job_that_publishes_gets_an_identity_and_none_has_a_token():
    jobs = _workflow("release")["jobs"]
    trusted = {name for name, job in jobs.items() if "id-token" in job.get("permissions", {})}
    assert trusted == {"publish"}
    assert jobs["publish"]["needs"] == "try"
    assert jobs["try"]["needs"] == "build"
    assert all("secrets." not in file.read_text(encoding="utf-8") for file in FOLDER.iterdir())


@pytest.mark.parametrize("name", sorted(file.stem for file in FOLDER.glob("*.yml")))
def test_what_a_workflow_runs_is_there(name):
    extras = PROJECT["optional-dependencies"]
    for step in _steps(name):
        assert ("uses" in step) != ("run" in step)
        command = step.get("run", "")
        assert set(re.findall(r"\.\[(\w+)\]", command)) <= set(extras)
        for script in re.findall(r"^scripts/\w+", command):
            assert (ROOT / script).is_file()
        assert re.fullmatch(r"[\w/-]+@(v\d+|release/v\d+)", step.get("uses", "a@v1"))


def test_the_container_serves_with_options_that_exist():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", text, flags=re.MULTILINE)
    program, command, *words = yaml.safe_load(entry)
    assert program in PROJECT["scripts"]
    known = {o for p in typer.main.get_command(app).commands[command].params for o in p.opts}
    assert {word for word in words if word.startswith("--")} <= known
    (extra,) = re.findall(r"source\[(\w+)\]", text)
    assert extra in PROJECT["optional-dependencies"]
    page = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
    for line in re.findall(r"^#\s+(docker .*)$", text, flags=re.MULTILINE):
        assert f"`{shlex.join(shlex.split(line)) if '$' not in line else line}`" in page


def test_the_changelog_begins_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## (\S+) \((not released|\d{4}-\d\d-\d\d)\)$", text, flags=re.MULTILINE)
    assert first
    assert first[1] == visionshare.__version__
