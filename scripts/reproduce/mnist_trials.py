"""Settings of the MNIST pipelines that were tried on validation images.

All that differs between trials is written out for each, so that a pipeline may change and its
trials still say what they were.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

__all__ = ["HELD_OUT", "KEYS", "TRIED", "folder_of", "settings_of"]

Trial = dict[str, float | bool | str]

# A sixth of the training images, 10 000, is the validation part; the same for every trial.
HELD_OUT = "data.held_out=0.16667"
# The keys of a recipe that a setting of a trial sets.
KEYS = {
    "members": ("members",),
    "seed": ("seed",),
    "rounds": ("learner.rounds",),
    "backward rounds": ("learner.n_backward",),
    "criterion": ("learner.criterion",),
    "ridge of the search": ("learner.alpha",),
    "search": ("learner.search_options",),
    "pool": ("features.pool",),
    "templates": ("features.parameters.n_templates",),
    "patches": ("features.parameters.patch_size",),
    "masks a side": ("features.parameters.grid",),
    "cut of masks": ("features.parameters.cut",),
    "search images": ("fine_tuning.search_images",),
    "most features": ("fine_tuning.max_features",),
    "epochs": ("fine_tuning.epochs",),
    "batch": ("fine_tuning.batch",),
    "rate": ("fine_tuning.rate",),
    "products": ("fine_tuning.products",),
    "most products": ("fine_tuning.max_products",),
    "rate of products": ("fine_tuning.product_rate",),
    "ridge": ("fine_tuning.alpha",),
    "margin": ("fine_tuning.margin",),
    "teacher": ("teacher",),
    "its weight": ("fine_tuning.teacher_weight",),
    "its temperature": ("fine_tuning.teacher_temperature",),
    "deformed": ("fine_tuning.deformed",),
    "pixels": ("deformations.alpha",),
    "degrees": ("deformations.rotation",),
    "stretch": ("deformations.scale", "deformations.shear"),
}

# The teacher: the mean of four classifiers that saw copies drawn anew, or the student's. Recipes
# have no teachers any more: the runs of these trials are kept, and are not repeated.
_TEACHER = (
    'members = 4, features = {{ pool = "patches", parameters = {{ n_templates = 300, grid = 6, '
    "cut = 0.7 }} }}, learner = {{ rounds = 100, search_options = {{ per = 'macs' }} }}, "
    "fine_tuning = {{ products = true, max_products = 1500, rate = 4e-3, product_rate = 1e-3, "
    "alpha = 1e-3, search_images = 10000, {} }}"
)
TEACHERS = {
    "other copies": f"{{ {_TEACHER.format('epochs = 40, deformed = true')} }}",
    "the same copies": f"{{ {_TEACHER.format('epochs = 6')} }}",
}

_WEAK: Trial = {"pixels": 1.0, "degrees": 7.0, "stretch": 0.07}
_STRONG: Trial = {"pixels": 1.5, "degrees": 10.0, "stretch": 0.1}
_QUICK: Trial = {
    "rounds": 80, "templates": 300, "search images": 10_000, "epochs": 10, "batch": 128,
    "rate": 1e-3, "products": True, "rate of products": 3e-4, "ridge": 1e-4, "margin": 1.0,
    "deformed": True, **_WEAK,
}  # fmt: skip
_TWENTY: Trial = {**_QUICK, "epochs": 20, "rate": 4e-3, "rate of products": 1e-3}
_MASKS: Trial = {"patches": 7, "masks a side": 4, "cut of masks": 0.45}
_COMPACT: Trial = {**_TWENTY, **_MASKS, "members": 1, "epochs": 40}
_PRUNED: Trial = {**_COMPACT, "rounds": 120, "ridge": 1e-3, "most products": 1500}
_NARROW: Trial = {**_PRUNED, "masks a side": 6, "cut of masks": 0.7}
_WEAKER: Trial = {"pixels": 0.75, "degrees": 5.0, "stretch": 0.05}
_MIDDLE: Trial = {"pixels": 1.25, "degrees": 8.0, "stretch": 0.08}
_DEFORMED: Trial = {
    "pool": "patches", "rounds": 305, "templates": 300, "epochs": 12, "products": False,
    "margin": 1.0, **_MASKS, **_WEAK,
}  # fmt: skip
_TUNED: Trial = {**_DEFORMED, "search images": 10_000, "rate": 4e-3, "ridge": 1e-3}
# Scores of candidates are not divided by the multiply-accumulates that they add.
_AT_ANY_COST: Trial = {"search": "{}"}

_COSTLY: Trial = {
    **_TUNED, **_AT_ANY_COST, "templates": 1000, "search images": 20_000, "rate": 3e-3,
}  # fmt: skip

_TAUGHT: Trial = {
    **_COSTLY, "ridge": 1e-4, "teacher": "other copies", "its weight": 0.8, "its temperature": 3.0,
}  # fmt: skip

_DESLANTED: Trial = {**_COSTLY, "pool": "deslanted-patches"}

TRIED: dict[str, list[Trial]] = {
    "mnist-266": [{"rounds": 266}],
    "mnist-compact": [
        {**_COMPACT, "rounds": 160, "templates": 1000, "search images": 20_000, "epochs": 30},
        {**_COMPACT, "rounds": 100, **_STRONG},
        {**_COMPACT, "rounds": 120, "ridge": 1e-3},
        {**_COMPACT, "rounds": 120, "ridge": 3e-3, "most products": 1500},
        {**_COMPACT, "rounds": 120, "ridge": 1e-3, "epochs": 80, **_MIDDLE},
        {**_COMPACT, "rounds": 90, "ridge": 1e-3, **_AT_ANY_COST},
        {**_PRUNED, "seed": 1},
        {**_PRUNED, "seed": 2},
        {**_PRUNED, "members": 2, "epochs": 60},
        {**_PRUNED, "members": 3, "rounds": 80},
        {**_PRUNED, "members": 4, "rounds": 60},
        {**_PRUNED, "members": 5, "rounds": 48, "most products": 1100},
        {**_COMPACT, "rounds": 200, "ridge": 1e-3, "epochs": 60, **_STRONG},
        {**_NARROW, "members": 4, "rounds": 100},
        {**_NARROW, "members": 5, "rounds": 96},
    ],
    "mnist-deformed": [
        {**_DEFORMED, "search images": 20_000, "rate": 4e-3},
        {
            **_DEFORMED,
            **_STRONG,
            **_AT_ANY_COST,
            "search images": 10_000,
            "rate": 2e-3,
            "ridge": 1e-3,
        },
        {**_TUNED, "rounds": 160, "epochs": 12, "products": True, "most products": 145,
         "rate of products": 1e-3},
        {**_TUNED, "epochs": 6},
        {**_TUNED, **_MIDDLE, "epochs": 8, "ridge": 3e-3},
        {**_TUNED, "members": 2, "rounds": 152, "epochs": 8},
        {**_COSTLY, "epochs": 6},
        {**_COSTLY, "epochs": 10},
        {**_COSTLY, "epochs": 10, **_WEAKER},
        {**_COSTLY, "epochs": 10, "masks a side": 6, "cut of masks": 0.7},
        {**_COSTLY, "epochs": 10, "patches": 9, "masks a side": 6, "cut of masks": 0.7},
        {**_TAUGHT, "epochs": 10, "ridge": 1e-3},
        {**_TAUGHT, "epochs": 10},
        {**_TAUGHT, "epochs": 10, "ridge": 3e-4, "its weight": 0.5,
         "its temperature": 2.0},
        {**_TAUGHT, "epochs": 10, "ridge": 3e-5, "its weight": 0.95,
         "its temperature": 5.0},
        {**_TAUGHT, "epochs": 10, "masks a side": 6, "cut of masks": 0.7},
        {**_TAUGHT, "epochs": 12, "teacher": "the same copies"},
        {**_DESLANTED, "epochs": 10},
        {**_DESLANTED, "epochs": 10, "degrees": 10.0, "stretch": 0.1},
        {**_DESLANTED, "epochs": 10, "search images": 60_000},
        {**_DESLANTED, "epochs": 10, "rounds": 600, "search images": 12_000,
         "most features": 305},
        {**_DESLANTED, "epochs": 14, "rounds": 600, "search images": 12_000,
         "most features": 305, "ridge": 3e-3},
    ],
}  # fmt: skip


def settings_of(trial: Trial) -> list[str]:
    """Return what ``visionshare train --set`` takes, the validation part included."""
    settings = [HELD_OUT]
    for name, value in trial.items():
        value = TEACHERS.get(str(value), value)
        written = str(value).lower() if isinstance(value, bool) else f"{value}"
        settings += [f"{key}={written}" for key in keys_of(name, trial)]
    return settings


def keys_of(name: str, trial: Trial) -> list[str]:
    """Return the keys that a setting sets; those of deslanted patches are a part's."""
    part = "patches." if trial.get("pool") == "deslanted-patches" else ""
    prefix = f"features.parameters.{part}"
    return [key.replace("features.parameters.", prefix) for key in KEYS[name]]


def folder_of(runs: Path, pipeline: str, trial: Trial) -> Path:
    """Return the folder of a trial, named by its settings."""
    digest = hashlib.sha256("\n".join(sorted(settings_of(trial))).encode()).hexdigest()
    return runs / "trials" / f"{pipeline}-{digest[:10]}"
