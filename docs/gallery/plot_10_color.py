"""
Pictures in color
=================

Traffic signs differ in color and in shape. Channels give features both.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from visionshare import Channels, Features, Network, PatchTemplates, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.datasets.samples import sign_picture

# %%
# Sample signs, drawn with noise, in any light (``visionshare samples`` writes the same kind as files).

names = np.array(["stop", "no-entry", "yield", "one-way", "parking", "priority"])
rng = np.random.default_rng(0)
labels = np.repeat(names, 60)
images = np.stack([sign_picture(name, rng) for name in labels])
figure, axes = plt.subplots(1, 6, figsize=(9, 1.8))
for axis, name in zip(axes, names, strict=True):
    axis.imshow(images[labels == name][0])
    axis.set_title(name, fontsize=9)
    axis.set_axis_off()
plt.show()

# %%
# The same templates on gray values, on colors, and on orientations of edges:

train, test, train_labels, test_labels = train_test_split(
    images, labels, test_size=0.4, stratify=labels, random_state=0
)
errors = {}
for title, channels in (
    ("gray", ("gray",)),
    ("colors", ("gray", "opponent")),
    ("edges", ("gray", "orientations")),
    ("colors and edges", ("gray", "opponent", "orientations")),
):
    templates = PatchTemplates(patch_size=3, n_templates=30, grid=3, widths=(3.0,), random_state=0)
    family = Network([Channels(channels, pool=3), Features(templates)]).fit(train)
    columns = ArrayColumns.from_family(family, train)
    classifier = ShareBoost(rounds=24).fit(columns, train_labels).to_classifier(family)
    errors[title] = 100 * (classifier.predict(test) != test_labels).mean()
# Colors help most here. Guessing one of six signs is wrong in 83 %.
assert max(errors.values()) < 60
assert min(errors["colors"], errors["colors and edges"]) < errors["gray"]
plt.figure(figsize=(6, 2.4))
plt.barh(list(errors), list(errors.values()))
plt.xlabel("error, %")
plt.tight_layout()
plt.show()
