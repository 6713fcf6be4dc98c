"""Exported classifiers as packages of the ecosystems of small cores and of the web."""

from visionshare.export.packages.contents import PACKAGES, Package, package, write_package

__all__ = ["PACKAGES", "Package", "package", "write_package"]
