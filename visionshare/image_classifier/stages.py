"""The stages of a search: each proposes what differs in one thing from the best so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias

from visionshare.answers import LabelRule
from visionshare.datasets import Augmentation
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.image_classifier.augmenting import colored, deformed, mirrored, shifted
from visionshare.image_classifier.proposals import Greedy, Proposal, structures
from visionshare.image_classifier.state import StructureSearch
from visionshare.image_classifier.structure import Structure

#: Proposes what to try next, and changes nothing.
Stage: TypeAlias = Callable[[StructureSearch], Iterable[Proposal]]


def first_stages(state: StructureSearch) -> list[tuple[Stage, float]]:
    """Return the first stages, each with the margin by which a proposal has to be better."""
    settings = state.settings
    if settings.features != "auto":
        return [(_named_pool, 0.0)]
    if not state.searches_structures:
        return [(_pools_of_vectors, 0.0)]
    return [
        (_structures, 0.0),
        (_without_copies, settings.plain),
        (_mirrored, settings.sure),
        (_colored, settings.likely),
        (_fronts, settings.likely),
        # Units nearly always help where a training is long, and a trial is short.
        (_heads, 0.0),
        (_fewer_layers, settings.likely),
        (_smoothed, settings.likely),
        (_variants, settings.likely),
    ]


def last_stages(state: StructureSearch) -> list[tuple[Stage, float]]:
    """Return the stages after the augmentation is known."""
    if not state.searches_structures:
        return []
    likely = state.settings.likely
    last = _pools if state.bits is None else _other_bits
    return [(_members, 0.0), (_fewer_members, likely), (last, likely)]


def _named_pool(state: StructureSearch) -> Iterable[Proposal]:
    yield _greedy(state, state.settings.features, state.settings.rounds)


def _greedy(
    state: StructureSearch, pool: Any, rounds: int, parameters: dict[str, Any] | None = None
) -> Proposal:
    """Propose a greedy choice with at most the rounds that fit the budget."""
    # A feature has a weight for each class; two classes may share one.
    if state.budget.macs is not None:
        rounds = min(rounds, max(1, state.budget.macs // max(1, state.data.n_classes - 1)))
    return Proposal(Greedy(pool, rounds, parameters or {}))


def _pools_of_vectors(state: StructureSearch) -> Iterable[Proposal]:
    length = state.data.raster[1]
    n = state.trials.n
    yield Proposal(Greedy("pixels", min(length, 100)))
    if length <= 64:
        yield Proposal(Greedy("products", 100))
    if n >= 20:
        parameters = {"n_components": min(20, length, n), "n_anchors": min(300, n)}
        yield Proposal(Greedy("rbf", 100, parameters))


def _structures(state: StructureSearch) -> Iterable[Proposal]:
    """Propose the deepest structure, with each augmentation."""
    found = next(structures(state.data, state.budget, state.bits, state.members), None)
    if found is None:
        yield from pixels_alone(state)
        return
    augment = state.settings.augment
    augmentations: list[tuple[Augmentation | None, str]]
    if isinstance(augment, Augmentation):
        augmentations = [(augment, "given copies")]
    elif augment is False:
        augmentations = [(None, "no copies")]
    else:
        augmentations = [shifted(state.data), deformed(state.data)]
    for augmentation, words in augmentations:
        optimizer = state.settings.optimizer
        yield Proposal(found, augmentation, words, state.bits, optimizer=optimizer)


def pixels_alone(state: StructureSearch) -> Iterable[Proposal]:
    """Propose pixels, where no structure can be learned."""
    # Integers of few bits are of structures, and several labels are learned by gradients.
    answers = state.trials.held_out.answers
    has_labels = answers is not None and isinstance(answers.rule, LabelRule)
    if state.bits is None and not has_labels:
        yield _greedy(state, "pixels", 100)


def _to_augment(state: StructureSearch) -> Proposal | None:
    """Return the best proposal, where other augmentations may be tried on it."""
    given = isinstance(state.settings.augment, Augmentation) or state.settings.augment is False
    return None if given or state.structure is None else state.proposal


def _without_copies(state: StructureSearch) -> Iterable[Proposal]:
    proposal = _to_augment(state)
    if proposal is not None and state.settings.augment == "auto":
        yield replace(proposal, augmentation=None, words="no copies")


def _mirrored(state: StructureSearch) -> Iterable[Proposal]:
    proposal = _to_augment(state)
    if proposal is not None:
        made, words = mirrored(proposal.augmentation, proposal.words)
        yield replace(proposal, augmentation=made, words=words)


def _colored(state: StructureSearch) -> Iterable[Proposal]:
    proposal = _to_augment(state)
    if proposal is not None and state.data.raster[2] == 3:
        made, words = colored(proposal.augmentation, proposal.words)
        yield replace(proposal, augmentation=made, words=words)


def _changed(state: StructureSearch, depth: int, **others: Any) -> Iterable[Proposal]:
    """Propose the best with the widest structure of other kind, if there is one."""
    found = state.widest(depth, **others)
    if found is not None:
        yield replace(state.proposal, features=found)


def _fronts(state: StructureSearch) -> Iterable[Proposal]:
    """Propose channels of the image, and images of glyphs without slant."""
    structure = state.structure
    if structure is None:
        return
    fronts: list[tuple[str, ...]] = []
    # Channels have floats.
    if state.bits is None and state.data.raster[2] == 1:
        fronts = [("gray", "orientations")]
    if state.bits is None and state.data.raster[2] == 3:
        fronts = [("rgb", "orientations"), ("ycbcr",), ("gray", "orientations"), ("gray",)]
    for channels in fronts:
        yield from _changed(state, len(structure.layers), channels=channels)
    if state.data.is_glyphs:
        yield from _changed(state, len(structure.layers), deslanted=True)


def _heads(state: StructureSearch) -> Iterable[Proposal]:
    structure = state.structure
    if structure is None:
        return
    for head in ("hidden", "low-rank"):
        others = {**_all_but_width(structure), "head": head, "n_units": state.settings.n_units}
        yield from _changed(state, len(structure.layers), **others)


def _fewer_layers(state: StructureSearch) -> Iterable[Proposal]:
    structure = state.structure
    if structure is not None and structure.layers:
        yield from _changed(state, len(structure.layers) - 1, **_all_but_width(structure))


def _smoothed(state: StructureSearch) -> Iterable[Proposal]:
    has_classes = state.trials.held_out.answers is None
    if state.structure is not None and state.bits is None and has_classes:
        yield replace(state.proposal, smoothing=state.settings.smoothing)


def _variants(state: StructureSearch) -> Iterable[Proposal]:
    structure = state.structure
    if structure is None:
        return
    for variant in state.settings.variants:
        others = {**_all_but_width(structure), "variant": variant}
        yield from _changed(state, len(structure.layers), **others)


def _members(state: StructureSearch) -> Iterable[Proposal]:
    if state.structure is not None and state.members > 1:
        yield replace(state.proposal, members=state.members)


def _fewer_members(state: StructureSearch) -> Iterable[Proposal]:
    """Propose fewer members, each of a wider structure."""
    structure = state.structure
    if structure is None:
        return
    for members in range(state.members - 1, 0, -1):
        same = _all_but_width(structure)
        found = state.widest(len(structure.layers), members=members, **same)
        if found is not None and found != structure:
            yield replace(state.proposal, features=found, members=members)


def _other_bits(state: StructureSearch) -> Iterable[Proposal]:
    structure = state.structure
    if structure is None:
        return
    for templates in state.settings.other_template_bits:
        bits = Bits(templates, state.settings.weight_bits)
        found = state.widest(len(structure.layers), bits=bits, **_all_but_width(structure))
        # Fewer bits are there for more templates.
        if found is not None and (templates == 8 or found != structure):
            yield replace(state.proposal, features=found, bits=bits)


def _pools(state: StructureSearch) -> Iterable[Proposal]:
    """Propose greedy choices from pools, where there are few images."""
    n = state.trials.n
    side = min(state.data.raster[:2])
    if state.data.n > state.settings.n_greedy or state.data.raster[2] not in (1, 3):
        return
    if side >= 8:
        parameters = {
            "channels-1": {"pool": 4 if side >= 16 else 2},
            "rbf": {"n_anchors": min(400, n), "n_components": min(60, n, 2 * side)},
        }
        yield _greedy(state, "gradient-anchors", 150, parameters)
    if side >= 16:
        yield _greedy(state, "lbp", 60, {"codes": "uniform", "grid": 2})


def _all_but_width(structure: Structure) -> dict[str, Any]:
    """Return what a structure has beside its layers and templates."""
    names = ("channels", "head", "n_units", "deslanted", "variant")
    return {name: getattr(structure, name) for name in names}
