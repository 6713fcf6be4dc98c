"""
Textures, and a map of a picture
================================

Learn three textures from small patches, then label every pixel of a larger picture.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

from visionshare import GaborBank, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.datasets import Cut, load_dataset
from visionshare.reading.segmentation import label_map

# %%
# Training patches are from the left halves of three pictures.

cut = Cut(size=16, per_class=300)
train, test = (load_dataset("textures", part, cut=cut) for part in ("train", "test"))
family = GaborBank(
    n_filters=150, frequencies=(0.05, 0.45), sigmas=(0.7, 3.0), pooling="mean",
    border="inside", reach=4, zero_mean=True, phases=True, random_state=0,
)  # fmt: skip
columns = ArrayColumns.from_family(family.fit(train.images), train.images)
classifier = ShareBoost(rounds=20).fit(columns, train.labels).to_classifier(family)
error = (classifier.predict(test.images) != test.labels).mean()
print(f"{error:.1%} of the test patches are wrong, with {classifier.n_features} features")
assert error < 0.2

# %%
# A picture of the right halves, which trained nothing:

plates = [data.brick(), data.grass(), data.gravel()]
mosaic = np.hstack([plate[:128, 256:352] for plate in plates])
labels = label_map(classifier, mosaic, step=2, smooth=9)
truth = np.repeat(np.arange(3), 96)[None, :]
right = (labels == truth).mean()
print(f"{right:.1%} of the pixels are right")
assert right > 0.8

figure, (above, below) = plt.subplots(2, 1, figsize=(6, 5))
above.imshow(mosaic, cmap="gray")
below.imshow(mosaic, cmap="gray")
below.imshow(labels, alpha=0.5, cmap="viridis")
for axis in (above, below):
    axis.set_axis_off()
plt.show()

# %%
# On the command line: ``visionshare segment CLASSIFIER picture.png --out map.png --smooth 9``.
