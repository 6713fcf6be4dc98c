"""Layers in integers of few bits: numbers, kernels, and programs of all layers at once."""
