"""How a classifier is fine-tuned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from visionshare.errors import InputError
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.integers.rounding import format_of
from visionshare.learners.class_weights import check_class_weight
from visionshare.learners.fine_tuning.heads import HEADS, UNITS
from visionshare.learners.parameters import check_fraction, check_numbers, check_whole_numbers
from visionshare.solvers import OPTIMIZERS


@dataclass(frozen=True)
class Quantization:
    """Bits of templates and weights, and when fine-tuning begins to learn with them.

    Attributes
    ----------
    template_bits : {8, 4, 2, "ternary"}, default 4
        Of templates, of maps and of patches.
    weight_bits : {8, 4, 2, "ternary"}, default 4
        Of weights of features, and of units.
    from_fraction : float, default 0.5
        Fraction of the epochs that learn with floats. Features go after half of the epochs
        (``max_features``), so that it is 0.5 at least where some do.
    first_bits : {8, 4, 2, "ternary"}, optional
        Of the first layer's templates; ``template_bits`` when omitted.
    score_bits : {8, 4, 2, "ternary"}, optional
        Of the weights of scores; ``weight_bits`` when omitted.

    Examples
    --------
    >>> Quantization(template_bits="ternary").first_epoch(20)
    10
    """

    template_bits: int | str = 4
    weight_bits: int | str = 4
    from_fraction: float = 0.5
    first_bits: int | str | None = None
    score_bits: int | str | None = None

    def __post_init__(self) -> None:
        for name in ("template_bits", "weight_bits"):
            format_of(name, getattr(self, name))
        for name in ("first_bits", "score_bits"):
            if getattr(self, name) is not None:
                format_of(name, getattr(self, name))
        check_fraction("from_fraction", self.from_fraction, zero=True)

    @property
    def bits(self) -> Bits:
        """Bits of all that is rounded."""
        return Bits(self.template_bits, self.weight_bits, self.first_bits, self.score_bits)

    def first_epoch(self, epochs: int) -> int:
        """Return the epoch, of so many, that begins with few bits; the last at the latest."""
        return min(math.ceil(self.from_fraction * epochs), epochs - 1)


@dataclass(frozen=True)
class FineTuning:
    """How a classifier is fine-tuned.

    Attributes
    ----------
    epochs : int, default 20
        Passes over the images; 2 at least where features or products are to go.
    batch : int, default 128
        Images a step.
    rate : float, default 1e-3
        Peak rate of the features' parameters, in their own units, and of the weights of
        standardized features.
    optimizer : {"adam", "muon"}, default "adam"
        What makes steps of gradients. With "muon" the templates of a layer move in different
        directions (:class:`visionshare.solvers.Muon`): fewer epochs do.
    max_features : int, optional
        Features that stay after half of the epochs, those that move the scores most. All when
        omitted. A search that is blind to how features will move takes too many, and then the
        best stay.
    head : {"products", "linear", "hidden", "low-rank"}, default "products"
        What follows the features: weights of them and of products of their pairs, all of them at
        first; weights alone; or weights of ``n_units`` units, each a weighted sum of all features,
        rectified or squared. Units begin at random: the weights that were found are lost.
    n_units : int, default 48
        Of a head of units.
    max_products : int, optional
        Products that stay after half of the epochs, those with the largest weights. All when
        omitted.
    weight_standardization : bool, default False
        Move templates as directions of zero mean, each with a gain: layers of templates on maps
        learn faster so. ``rate`` is then of directions with a mean square of 2/d at the start, for
        d taps (:mod:`visionshare.learners.fine_tuning.standardized_templates`).
    product_rate : float, default 3e-4
        Peak rate of the weights of standardized products.
    warm_up : float, default 0.2
        Fraction of the steps in which the rates grow.
    alpha : float, default 1e-4
        λ of the ridge on weights of standardized features and products.
    margin : float, default 1.0
        Of the loss, as in :class:`visionshare.learners.ShareBoost`.
    label_smoothing : float, default 0.0
        Fraction of the labels' loss that is the distance to equal probabilities of all classes.
    averaging : float, default 0.0
        Decay of moving averages of all that moves, which the classifier is made of: about the last
        1 / (1 − averaging) steps count. With 0 it is made of what the last step left.
    validation_fraction : float, default 0.05
        Fraction of the images that validate and do not train, and by which the probabilities are
        calibrated; with 0 these are the training images, each before its step, or where
        parameters are averaged some of them after the last one.
    teacher_weight : float, default 0.8
        Fraction of the loss that compares scores with a teacher's, where there is one.
    teacher_temperature : float, default 3.0
        Of both scores there, see :class:`visionshare.losses.SoftTargets`.
    several : bool, default False
        Whether an image may have several classes: a teacher's table then says of each class alone
        how probable it is.
    class_weight : dict or "balanced", optional
        What an image of each class counts, 1 for classes that a dict does not name; "balanced" as
        if each class had the same number of images. All images count 1 when omitted.
    random_state : int, default 0
        Seed of the images' order and of those that validate.
    quantization : Quantization, optional
        Few bits that features and weights are learned in, to the end: the classifier then has
        a network of integer layers, and whole weights. Floats when
        omitted.

    Examples
    --------
    >>> FineTuning(epochs=40, max_features=100).head
    'products'
    """

    epochs: int = 20
    batch: int = 128
    rate: float = 1e-3
    optimizer: str = "adam"
    max_features: int | None = None
    head: str = "products"
    n_units: int = 48
    max_products: int | None = None
    weight_standardization: bool = False
    product_rate: float = 3e-4
    warm_up: float = 0.2
    alpha: float = 1e-4
    margin: float = 1.0
    label_smoothing: float = 0.0
    averaging: float = 0.0
    validation_fraction: float = 0.05
    teacher_weight: float = 0.8
    teacher_temperature: float = 3.0
    several: bool = False
    class_weight: dict[Any, float] | str | None = None
    random_state: int = 0
    quantization: Quantization | None = None

    def __post_init__(self) -> None:
        if self.head not in HEADS:
            raise InputError("head", self.head, " or ".join(map(repr, HEADS)))
        if self.optimizer not in OPTIMIZERS:
            raise InputError("optimizer", self.optimizer, " or ".join(map(repr, OPTIMIZERS)))
        check_class_weight(self.class_weight)
        if self.head in UNITS and self.max_features is not None:
            accepted = "none where units follow the features"
            raise InputError("max_features", self.max_features, accepted)
        check_whole_numbers(self, 1, "epochs", "batch", "n_units")
        check_whole_numbers(self, 0, "random_state")
        check_whole_numbers(self, 1, "max_features", "max_products", optional=True)
        some_go = self.max_features is not None or self.max_products is not None
        if some_go and self.epochs < 2:
            accepted = "a whole number of at least 2, where features or products go after half"
            raise InputError("epochs", self.epochs, accepted)
        check_numbers(self, "rate", "product_rate", "alpha", "margin")
        check_numbers(self, "teacher_temperature", positive=True)
        check_fraction("warm_up", self.warm_up)
        check_fraction("teacher_weight", self.teacher_weight, zero=True, one=True)
        check_fraction("label_smoothing", self.label_smoothing, zero=True)
        check_fraction("averaging", self.averaging, zero=True)
        check_fraction("validation_fraction", self.validation_fraction, zero=True)
        quantization = self.quantization
        if quantization is None:
            return
        if self.head == "products":
            accepted = "another head, where weights are whole numbers"
            raise InputError("head", self.head, accepted)
        if self.max_features is not None and quantization.from_fraction < 0.5:
            accepted = "0.5 or more, where features go after half of the epochs"
            raise InputError("from_fraction", quantization.from_fraction, accepted)

    @property
    def first_quantized_epoch(self) -> int:
        """The epoch that begins with few bits; the number of epochs where none does."""
        quantization = self.quantization
        return self.epochs if quantization is None else quantization.first_epoch(self.epochs)
