"""Solvers of the restricted master problem: loss plus penalty over the columns chosen so far.

``minimize`` solves the smooth problem of all classes together; a :class:`Solver` that of tasks
with norms that make weights zero.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
