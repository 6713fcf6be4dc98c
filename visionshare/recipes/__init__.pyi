from .design.cost import Budget as Budget
from .design.running import DesignResult as DesignResult
from .design.running import design_recipe as design_recipe
from .reading import list_pipelines as list_pipelines
from .reading import load_recipe as load_recipe
from .schema import Recipe as Recipe
from .training import TrainResult as TrainResult
from .training import train as train
