"""Features in whole numbers of few bits: layers that compute without floating point."""

from visionshare.generators.quantized.family import QuantizedLayers

__all__ = ["QuantizedLayers"]
