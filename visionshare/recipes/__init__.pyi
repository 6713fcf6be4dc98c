from .reading import list_pipelines as list_pipelines
from .reading import load_recipe as load_recipe
from .schema import Recipe as Recipe
from .training import TrainResult as TrainResult
from .training import train as train
from .training import train_images as train_images
