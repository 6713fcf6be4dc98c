# The one list of public names: read by type checkers, and by `__init__.py` when it is imported.

from .augmentation.copies import Augmentation as Augmentation
from .augmentation.copies import augmented_copies as augmented_copies
from .catalog import dataset_info as dataset_info
from .catalog import fetch_dataset as fetch_dataset
from .catalog import list_datasets as list_datasets
from .catalog import verify_dataset as verify_dataset
from .catalog_sets import load_dataset as load_dataset
from .catalog_sets import load_plates as load_plates
from .decoding import decode_image as decode_image
from .decoding import decode_pages as decode_pages
from .decoding import picture_header as picture_header
from .glyphs import Fonts as Fonts
from .imageset import ImageSet as ImageSet
from .loading import load_images as load_images
from .pictures.preparation import Preparation as Preparation
from .pictures.preparation import propose_preparation as propose_preparation
from .preprocessing import Preprocessing as Preprocessing
from .shards import StoredPictures as StoredPictures
from .shards import survey_shards as survey_shards
from .textures import Cut as Cut
