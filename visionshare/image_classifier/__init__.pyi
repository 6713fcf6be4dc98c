from .comparison import Comparison as Comparison
from .comparison import compare as compare
from .estimator import ImageClassifier as ImageClassifier
from .regressor import ImageRegressor as ImageRegressor
