"""
What features look like
=======================

Each feature is a small template and a mask of positions.
"""

import matplotlib.pyplot as plt
import numpy as np

from visionshare import PatchTemplates, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.datasets import load_dataset

train = load_dataset("digits", "train")
family = PatchTemplates(patch_size=3, n_templates=100, grid=3, widths=(2.0,), random_state=0)
columns = ArrayColumns.from_family(family.fit(train.images), train.images)
classifier = ShareBoost(rounds=12).fit(columns, train.labels).to_classifier(family)

# %%
# ``classifier.features`` describes each: its template, its mask, and its weight for each class. The feature is the
# largest response of the template anywhere under the mask.

figure, axes = plt.subplots(3, 12, figsize=(11, 3.2), height_ratios=(1, 1, 1.4))
for j, feature in enumerate(classifier.features):
    axes[0, j].imshow(feature["template"], cmap="gray")
    axes[1, j].imshow(feature["mask"], cmap="Blues", vmin=0, vmax=1)
    axes[2, j].barh(range(10), list(feature["weights"].values()))
    axes[2, j].invert_yaxis()
    axes[2, j].set_xticks([])
    axes[2, j].set_yticks(range(10) if j == 0 else [])
    for axis in axes[:2, j]:
        axis.set_axis_off()
axes[0, 0].set_title("template", fontsize=9, loc="left")
axes[1, 0].set_title("where", fontsize=9, loc="left")
axes[2, 0].set_title("weights by class", fontsize=9, loc="left")
plt.show()

# %%
# The value of the first feature, for the images where it is largest and smallest:

values = classifier.family.transform(train.images)[:, 0]
order = np.argsort(values)
assert len(classifier.features) == 12
assert values[order[-10:]].min() > values[order[:10]].max()
figure, axes = plt.subplots(2, 10, figsize=(11, 2.4))
for row, chosen in zip(axes, (order[-10:], order[:10]), strict=True):
    for axis, i in zip(row, chosen, strict=True):
        axis.imshow(train.images[i], cmap="gray")
        axis.set_axis_off()
axes[0, 0].set_title("largest", fontsize=9, loc="left")
axes[1, 0].set_title("smallest", fontsize=9, loc="left")
plt.show()
