# The one list of public names: read by type checkers, and by `__init__.py` when it is imported.

from .multiclass import Loss as Loss
from .multiclass import MulticlassLogistic as MulticlassLogistic
from .multiclass import Multinomial as Multinomial
from .multiclass import checked_margin as checked_margin
from .separable import TASK_LOSSES as TASK_LOSSES
from .separable import Absolute as Absolute
from .separable import ConjugateLoss as ConjugateLoss
from .separable import Exponential as Exponential
from .separable import Hinge as Hinge
from .separable import ImportanceLoss as ImportanceLoss
from .separable import Insensitive as Insensitive
from .separable import Logistic as Logistic
from .separable import Squared as Squared
from .separable import SquaredHinge as SquaredHinge
from .separable import TaskLoss as TaskLoss
from .separable import make_task_loss as make_task_loss
from .smoothed import Smoothed as Smoothed
from .soft_targets import SeveralTargets as SeveralTargets
from .soft_targets import SoftTargets as SoftTargets
