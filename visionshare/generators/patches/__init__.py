"""Patch templates under spatial masks."""

from visionshare.generators.patches.family import PatchTemplates

__all__ = ["PatchTemplates"]
