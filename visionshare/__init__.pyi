# The one list of public names: read by type checkers, and by `__init__.py` when it is imported.

from .classifier import CompactClassifier as CompactClassifier
from .classifier import load as load
from .distributed import DistributedColumns as DistributedColumns
from .distributed import PartitionedColumns as PartitionedColumns
from .generators.anchors import KernelAnchors as KernelAnchors
from .generators.fourier import RandomFourier as RandomFourier
from .generators.gabor import GaborBank as GaborBank
from .generators.layers.channels import Channels as Channels
from .generators.layers.depthwise import Depthwise as Depthwise
from .generators.layers.deslant import Deslant as Deslant
from .generators.layers.family import Features as Features
from .generators.layers.means import Means as Means
from .generators.layers.network import Network as Network
from .generators.layers.residual import Residual as Residual
from .generators.layers.templates import Templates as Templates
from .generators.layers.units import Units as Units
from .generators.lbp import LocalBinaryPatterns as LocalBinaryPatterns
from .generators.monomials import Monomials as Monomials
from .generators.patches import PatchTemplates as PatchTemplates
from .generators.pixels import Pixels as Pixels
from .generators.pretrained import PretrainedNetwork as PretrainedNetwork
from .generators.products import Products as Products
from .generators.sources import SourceClassifiers as SourceClassifiers
from .generators.stumps import Stumps as Stumps
from .generators.union import UnionOfFamilies as UnionOfFamilies
from .image_classifier import ImageClassifier as ImageClassifier
from .image_classifier import ImageRegressor as ImageRegressor
from .image_classifier import compare as compare
from .learners.dense import DenseClassifier as DenseClassifier
from .learners.fine_tuning import FineTuning as FineTuning
from .learners.fine_tuning import Quantization as Quantization
from .learners.fine_tuning import fine_tune as fine_tune
from .learners.forward_greedy import ForwardGreedyClassifier as ForwardGreedyClassifier
from .learners.forward_greedy import ForwardGreedyRegressor as ForwardGreedyRegressor
from .learners.greedytl import GreedyTL as GreedyTL
from .learners.group_features import GroupFeatureClassifier as GroupFeatureClassifier
from .learners.group_features import GroupFeatureRegressor as GroupFeatureRegressor
from .learners.jointboost import JointBoost as JointBoost
from .learners.mixed_norm import MixedNormClassifier as MixedNormClassifier
from .learners.one_against_rest import OneAgainstRest as OneAgainstRest
from .learners.shareboost import ShareBoost as ShareBoost
from .learners.structural_boosting import (
    StructuralBoostingClassifier as StructuralBoostingClassifier,
)
from .learners.structural_boosting import StructuralBoostingRegressor as StructuralBoostingRegressor

__version__: str
