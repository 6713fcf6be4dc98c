"""Teachers in a recipe: what is learned before, to teach in the fine-tuning."""

from __future__ import annotations

from typing import Any

from visionshare.recipes.schema import Recipe

__all__ = ["teacher_recipe"]


def teacher_recipe(recipe: Recipe) -> Recipe | None:
    """Return the recipe of the classifiers that teach; None where nobody does.

    What ``[teacher]`` leaves out is as in the recipe; the seed is the next one.
    """
    part = recipe.teacher
    if part is None:
        return None
    changes: dict[str, Any] = {"members": part.members, "seed": recipe.seed + 1, "teacher": None}
    for name in ("features", "learner", "fine_tuning"):
        given = getattr(part, name)
        if given is not None:
            said = {key: getattr(given, key) for key in given.model_fields_set}
            changes[name] = getattr(recipe, name).model_copy(update=said)
    return recipe.model_copy(update=changes)
