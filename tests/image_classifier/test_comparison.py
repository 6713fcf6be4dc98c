"""Error against cost over budgets."""

import pytest
from PIL import Image

from visionshare import PatchTemplates, compare
from visionshare.errors import InputError

POOL = PatchTemplates(3, 10, grid=2, widths=(2.0,), n_patches=500)


def test_budgets_are_compared_on_the_same_images(pictures):
    images, y = pictures
    budgets = (500, {"macs": 3000})
    found = compare(images, y, budgets, features=POOL, n_jobs=1)
    assert found.n_held_out == 16
    assert all(m <= b for m, b in zip(found.table["macs"], (500, 3000), strict=True))
    assert all(0 <= error <= 1 for error in found.errors)
    assert len(str(found).splitlines()) == 3


def test_columns_of_tables_are_taken_whatever_their_rows_are_called(pictures, tmp_path):
    import pandas as pd

    images, y = pictures
    paths = []
    for i, image in enumerate(images):
        paths.append(f"{tmp_path}/{i}.png")
        Image.fromarray(image).save(paths[-1])
    table = pd.DataFrame({"path": paths, "y": y}, index=range(1000, 1060))
    options = {"features": POOL, "n_jobs": 1, "size": 9}
    of_table = compare(table["path"], table["y"], (3000,), **options)
    assert of_table.errors == compare(paths, y, (3000,), **options).errors


def test_lists_are_taken(pictures):
    images, y = pictures
    found = compare(list(images), list(y), (3000,), features=POOL, n_jobs=1)
    assert found.errors[0] < 0.5


@pytest.mark.parametrize(
    ("options", "argument"),
    [({"budgets": ()}, "budgets"), ({"budgets": "all"}, "budgets"), ({"held_out": 0}, "held_out")],
)
def test_arguments_are_checked(options, argument, pictures):
    with pytest.raises(InputError, match=argument):
        compare(*pictures, **options)
