# The one list of public names: read by type checkers, and by `__init__.py` when it is imported.

from .norms import NORMS as NORMS
from .norms import GroupNorm as GroupNorm
from .norms import HalfSquares as HalfSquares
from .norms import RowPenalty as RowPenalty
from .norms import make_norm as make_norm
from .norms import violations as violations
from .smooth import PENALTIES as PENALTIES
from .smooth import NoPenalty as NoPenalty
from .smooth import Penalty as Penalty
from .smooth import Ridge as Ridge
from .smooth import SmoothL1 as SmoothL1
from .smooth import SmoothMax as SmoothMax
from .smooth import make_penalty as make_penalty
