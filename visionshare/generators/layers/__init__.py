"""Networks: feature families that are a list of layers. One folder per kind of layer.

To add a kind, make a folder with a class derived from
:class:`visionshare.generators.layers.layer.Layer`, and add its lines to
:mod:`visionshare.generators.layers.registry`.
"""
