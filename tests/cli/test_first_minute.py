"""What a new user types first: nothing, -h, names that are nearly right, options in any place."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from visionshare import CompactClassifier, Pixels
from visionshare.cli.main import main
from visionshare.errors.names import did_you_mean, near_names, near_paths, nothing_named
from visionshare.files.bundled import bundled
from visionshare.machine.progress import Progress

COMMANDS = [
    "train", "warmup", "samples", "evaluate", "inspect", "bench", "predict", "prepare",
    "explain", "extract", "segment", "find", "suggest", "read",
    "meter", "transfer", "export", "measure", "serve", "list", "models",
    "store info", "store export", "store verify", "store repair",
    "data list", "data info", "data verify", "data fetch", "data check",
]  # fmt: skip


@pytest.fixture
def run_folder(tmp_path, monkeypatch):
    """Return a folder to work in, with a trained classifier in out/letters."""
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out" / "letters"
    out.mkdir(parents=True)
    family = Pixels().fit(np.zeros((1, 4, 4), np.uint8))
    weights, intercept = np.eye(2, 16, dtype=np.float32), np.zeros(2, np.float32)
    CompactClassifier(family, weights, intercept, np.array(["a", "b"])).save(
        out / "classifier.safetensors"
    )
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    Image.new("L", (8, 8)).save(tmp_path / "photos" / "cat" / "1.png")
    return tmp_path


@pytest.mark.parametrize("group", [[], ["data"], ["store"]], ids=str)
def test_a_group_without_arguments_shows_its_help(group, capsys):
    assert main([*group, "--help"]) == 0
    expected = capsys.readouterr().out
    assert ("Learn:" if not group else "Commands:") in expected
    for words in (group, [*group, "-h"]):
        assert main(words) == 0
        said = capsys.readouterr()
        assert said.out == expected
        assert said.err == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_short_help_and_the_options_of_all(command, capsys):
    assert main([*command.split(), "-h"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"Usage: visionshare {command}")
    for option in ("-h, --help", "-q, --quiet", "-v, --verbose", "--debug"):
        assert said.count(option) == 1
    # What a value is, is said in a word of the user's: FILE, SIZE, N.
    assert not re.search(r"^  -.* (TEXT|PATH|INTEGER|FLOAT|<\w+>) ", said, flags=re.MULTILINE)


def test_the_commands_are_all_tested(capsys):
    names = []
    for group in ([], ["store"], ["data"]):
        assert main(group) == 0
        said = capsys.readouterr().out
        lines = said.partition("Show no progress.\n")[2].splitlines()
        names += [" ".join([*group, line.split()[0]]) for line in lines if line.startswith("  ")]
    assert sorted(names) == sorted([*COMMANDS, "store", "data"])


@pytest.mark.parametrize(
    "words",
    [
        ["--quiet", "{}"], ["{}", "--quiet"], ["-q", "{}"], ["{}", "-q"],
        ["--quiet", "{}", "--quiet"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_quiet_stands_before_or_after_the_command(words, run_folder, monkeypatch, capsys):
    shown = []
    monkeypatch.setattr(
        "visionshare.machine.progress.Progress.__enter__", lambda self: shown.append(1)
    )
    monkeypatch.setattr(Progress, "__exit__", lambda *_: None)
    assert main(["inspect", "out/letters"]) == 0
    assert shown == [1]
    assert main([word.format("inspect") for word in words] + ["out/letters"]) == 0
    assert shown == [1]
    assert "features" in capsys.readouterr().out


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("command", [["inspect"], ["store", "info"]], ids=" ".join)
def test_debug_stands_before_or_after_the_command(before, command, run_folder):
    (run_folder / "broken").write_bytes(b"x")
    words = [*command, "broken"]
    assert main(words) == 2
    with pytest.raises(Exception, match="broken"):
        main(["--debug", *words] if before else [*words, "--debug"])


def test_what_follows_two_dashes_is_no_option(run_folder, capsys):
    assert main(["predict", "out/letters", "--", "--debug"]) == 2
    assert "named '--debug'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("predct x", "No command 'predct'. Did you mean 'visionshare predict'"),
        ("check photos", "No command 'check'. Did you mean 'visionshare data check'?"),
        ("data chek photos", "No command 'chek'. Did you mean 'visionshare data check'?"),
        ("predict", "Missing argument 'CLASSIFIER'. Help: visionshare predict -h"),
        ("data --quiet", "Missing command. Help: visionshare data -h"),
        ("data info mnist extra", "Help: visionshare data info -h"),
        # Names and paths.
        ("train nosuchdir", "no folder, file or pipeline named 'nosuchdir'."),
        ("train photoz", "no folder, file or pipeline named 'photoz'. Did you mean 'photos'?"),
        ("train PHOTO", "Did you mean 'photos'?"),
        ("train digts", "Did you mean 'digits'?"),
        ("train none.toml", "no folder, file or pipeline named 'none.toml'."),
        ("train photos/cats", "Did you mean 'photos/cat'?"),
        ("predict letters x", "Did you mean 'out/letters'?"),
        ("predict out/leters x", "Did you mean 'out/letters'?"),
        ("predict photos x", "photos: a folder without classifier.safetensors"),
        ("predict out/letters photoz", "no file, folder or pattern named 'photoz'. Did you mean"),
        ("evaluate out/letters digitz", "named 'digitz'. Did you mean 'digits'?"),
        ("export leters --out x", "Did you mean 'out/letters'?"),
        ("measure out/letters --target cortex-m5", "(did you mean 'cortex-m"),
        ("export out/letters --to onx --out x", "(did you mean 'onnx'?)"),
        ("serve leters", "Did you mean 'out/letters'?"),
        ("read x --classifier leters", "Did you mean 'out/letters'?"),
        ("bench leters", "Did you mean 'out/letters'?"),
        ("explain out/letters photo", "no picture named 'photo'. Did you mean 'photos'?"),
        ("segment out/letters photo --out x.png", "no picture named 'photo'. Did you mean"),
        ("extract smal-patches photos --out s", "Did you mean 'small-patches'"),
        ("data info mnits", "no data set named 'mnits'. Did you mean 'mnist'?"),
        ("data verify mnits", "Did you mean 'mnist'?"),
        ("data fetch mnits", "Did you mean 'mnist'?"),
        ("data check photoz", "no folder or file named 'photoz'. Did you mean 'photos'?"),
        ("store info photoz", "no folder of a store named 'photoz'. Did you mean 'photos'?"),
        ("store verify photos", "photos: a folder without manifest.json"),
        ("transfer photos leters --out x", "named 'leters'"),
        # Values.
        ("train digits --rounds many", "--rounds: got 'many'; accepted: a whole number."),
        ("train digits --rounds=2.5", "--rounds: got '2.5'; accepted: a whole number."),
        ("predict out/letters photos -j x", "--jobs: got 'x'; accepted: a whole number."),
        ("transfer photos out/letters --tol x", "--tol: got 'x'; accepted: a number."),
        ("export out/letters --out x --to onnx --quantize int9", "--quantize: got 'int9'"),
        ("explain out/letters photos/cat/1.png --top 0", "--top"),
        ("list polls", "(did you mean 'pools'?)"),
    ],
)
def test_wrong_words_are_told_the_nearest_right_ones(words, message, run_folder, capsys):
    assert main(words.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert message in said.err
    # Long lists help nobody.
    assert said.err.count(",") < 12


def test_near_names_and_paths(tmp_path):
    assert near_names("mnits", ["mnist", "fonts"]) == ["mnist"]
    assert near_names("MNIST", ["mnist-4k", "mnist"]) == ["mnist"]
    assert near_names("x", ["mnist"]) == []
    assert near_names("cortex-m0", ["cortex-m7", "cortex-m0plus"]) == ["cortex-m0plus"]
    assert did_you_mean("x", ["a", "b"]) == ". Known: a, b."
    assert did_you_mean("x", map(str, range(30)), "See the list") == ". See the list"
    (tmp_path / "Photos" / "train").mkdir(parents=True)
    assert near_paths(tmp_path / "photo" / "tran") == [str(tmp_path / "Photos" / "train")]
    assert near_paths(tmp_path / "nothing" / "tran") == []
    assert near_paths("") == []
    assert len(nothing_named("a" * 5000, "file")) < 300
    assert "\\udcff" in nothing_named(os.fsdecode(b"\xff\n"), "file")


def test_list_names_what_other_commands_take(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(bundled("pipelines"))
    for kind, name in (("pools", "patches "), ("datasets", "mnist "), ("targets", "cortex-m4 ")):
        assert main(["list", kind]) == 0
        assert any(line.startswith(name) for line in capsys.readouterr().out.splitlines())


def completed(words, monkeypatch, capsys):
    """Return what bash offers for the last word."""
    monkeypatch.setenv("_VISIONSHARE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"visionshare {words}")
    monkeypatch.setenv("COMP_CWORD", str(1 + words.count(" ")))
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("tr", {"train", "transfer"}),
        ("data v", {"verify"}),
        ("train mnist-q", {"mnist-quick"}),
        ("train ph", {"photos", "photos/"}),
        ("train --rec", {"--recipe"}),
        ("train photos --recipe gly", {"glyphs"}),
        ("extract small-p", {"small-patches"}),
        ("data info fash", {"fashion-mnist"}),
        ("evaluate x usp", {"usps"}),
        ("measure x --target cortex-m4", {"cortex-m4"}),
        ("export x --to npm", {"npm"}),
        ("list po", {"pools"}),
        # The shell itself completes paths.
        ("train out/le", set()),
        ("predict out/le", set()),
    ],
)
def test_shells_complete_names(words, expected, run_folder, monkeypatch, capsys):
    assert set(completed(words, monkeypatch, capsys)) == expected


def test_completion_is_shown_and_installed(capsys):
    assert main(["-h"]) == 0
    said = capsys.readouterr().out
    assert "--install-completion" in said
    assert "--show-completion" in said


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
@pytest.mark.parametrize("words", [["list"], ["data", "list"], ["train", "-h"]], ids=" ".join)
def test_a_reader_that_has_seen_enough_is_no_error(words):
    """Like `visionshare list | head -0`: whatever is written finds no reader."""
    command = [sys.executable, "-m", "visionshare.cli", *words]
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert process.returncode == 1
    assert process.stderr == b""


def test_help_fits_narrow_terminals(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    for words in ([], ["train"], ["export"], ["measure"]):
        assert main([*words, "-h"]) == 0
        said = capsys.readouterr().out
        assert "\x1b" not in said
        assert max(map(len, said.splitlines())) <= 60
