"""
Easy images cost less
=====================

Most images are clear after a few features. A rule lets them stop there.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from visionshare import PatchTemplates, ShareBoost
from visionshare.classifier import EarlyExit, learn_exit_rule
from visionshare.columns import ArrayColumns
from visionshare.datasets import load_dataset

train, test = load_dataset("digits", "train"), load_dataset("digits", "test")

# %%
# The rule is learned on images that did not train the weights.

images, held_images, labels, held_labels = train_test_split(
    train.images, train.labels, test_size=0.3, stratify=train.labels, random_state=0
)
family = PatchTemplates(patch_size=3, n_templates=100, grid=3, widths=(2.0,), random_state=0)
columns = ArrayColumns.from_family(family.fit(images), images)
classifier = ShareBoost(rounds=40).fit(columns, labels).to_classifier(family)
rule = learn_exit_rule(classifier, held_images, held_labels, tolerance=0.01)
print("images may stop after the rounds", rule.rounds)

# %%
# Errors and cost of both, on the test images:

early = EarlyExit(replace(classifier, exit_rule=rule))
figures = early.measure(test.images, test.labels)
errors = int((classifier.predict(test.images) != test.labels).sum())
print(f"all features: {errors} errors of {len(test)}, {classifier.macs:,} multiply-accumulates")
print(f"early exit:   {figures.errors} errors, {figures.average_macs:,.0f} on average")
# The rule may change one label in a hundred; it saves at least two fifths of the work.
assert figures.average_macs < 0.6 * classifier.macs
assert figures.errors <= errors + 0.02 * len(test)

plt.figure(figsize=(6, 3))
stops = [*map(str, rule.rounds), "all"]
plt.bar(stops, figures.stage_fractions)
plt.xlabel("features at which an image stops")
plt.ylabel("fraction of images")
plt.tight_layout()
plt.show()
