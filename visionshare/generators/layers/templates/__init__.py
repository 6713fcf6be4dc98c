"""Templates: responses of small templates, rectified, and the maximum in each cell."""

from visionshare.generators.layers.templates.layer import TemplateLayer, Templates

__all__ = ["TemplateLayer", "Templates"]
