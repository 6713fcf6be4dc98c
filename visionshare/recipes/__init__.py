"""Recipes: a TOML file that says data, features, learner and budget; and its execution.

The public names stand in ``__init__.pyi``. Some commands read a pool of features alone: learners
are imported where they are used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
