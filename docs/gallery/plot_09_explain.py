"""
Why this label?
===============

A score is a sum of features times weights. So every feature shows how much it supports a class, and where.
"""

import matplotlib.pyplot as plt
import numpy as np

from visionshare import PatchTemplates, ShareBoost
from visionshare.classifier import explain
from visionshare.columns import ArrayColumns
from visionshare.datasets import load_dataset

train, test = load_dataset("digits", "train"), load_dataset("digits", "test")
family = PatchTemplates(patch_size=3, n_templates=100, grid=3, widths=(2.0,), random_state=0)
columns = ArrayColumns.from_family(family.fit(train.images), train.images)
classifier = ShareBoost(rounds=40).fit(columns, train.labels).to_classifier(family)

# %%
# The image with the least certain prediction:

probabilities = classifier.predict_proba(test.images)
image = test.images[np.argmin(probabilities.max(axis=1))]
said = explain(classifier, image)
first, second = np.argsort(-said.probabilities)[:2]
print(f"{said.label} with probability {said.probabilities[first]:.2f}")

# %%
# The features that count most for and against the label. They and the base add up to the score.

label = said.class_index()
for j in said.top_features(said.class_index(), 5):
    rows, cols = said.boxes[j, :2], said.boxes[j, 2:]
    print(
        f"feature {said.numbers[j]:2}: {said.evidence[label, j]:+.2f}, rows {rows}, columns {cols}"
    )
assert np.allclose(said.contributions.sum(axis=1) + said.base, said.scores, atol=1e-4)
assert said.label == said.classes[first]

# %%
# The evidence of all features, each spread over the pixels that it responded to; red supports the class.

figure, axes = plt.subplots(1, 3, figsize=(8, 3))
axes[0].imshow(image, cmap="gray")
for axis, c in zip(axes[1:], (first, second), strict=True):
    evidence = said.evidence_map(c)
    most = np.abs(evidence).max()
    axis.imshow(evidence, cmap="RdBu_r", vmin=-most, vmax=most)
    axis.set_title(f"for {said.classes[c]}: {said.probabilities[c]:.2f}")
for axis in axes:
    axis.set_axis_off()
plt.show()

# %%
# On the command line: ``visionshare explain CLASSIFIER picture.png --out why.png``.
