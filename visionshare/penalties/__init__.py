"""Penalties on a weight matrix: smooth ones, and norms that make weights zero.

``smooth`` has value, gradient and curvature; ``norms`` value, proximal operator and dual norm.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
