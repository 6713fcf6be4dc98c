"""Tables of pictures for tests of values and of several labels."""

import csv

from PIL import Image

from visionshare.cli.main import main


def write_table(folder, header, rows, pictures=()):
    """Write rows of a table, and pictures with the names in its first column; return the table."""
    with open(folder / "table.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(header)
        table.writerows(rows)
    for row, picture in zip(rows, pictures, strict=False):
        Image.fromarray(picture).save(folder / row[0])
    return folder / "table.csv"


def train(table, *options):
    """Train on a table; return the folder of the run."""
    out = table.parent / "out"
    given = ["--time", "4", "--budget", "30000", "--quiet", "--jobs", "1", "--out", str(out)]
    assert main(["train", str(table), *options, *given]) == 0
    return out


def rows_of(path):
    """Return the rows of a table."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def is_refused(capsys, table, message, *options):
    """Check that a training ends with a message before it writes anything."""
    out = table.parent / "out"
    assert main(["train", str(table), "--out", str(out), *options]) != 0
    assert message in capsys.readouterr().err
    assert not out.exists()
