"""
Fine-tuning
===========

Gradient descent moves the templates that the search chose. With a linear head, prediction costs the same.
"""

import matplotlib.pyplot as plt

from visionshare import FineTuning, PatchTemplates, ShareBoost, fine_tune
from visionshare.columns import ArrayColumns
from visionshare.datasets import load_dataset

train, test = load_dataset("digits", "train"), load_dataset("digits", "test")
family = PatchTemplates(patch_size=3, n_templates=100, grid=3, widths=(2.0,), random_state=0)
columns = ArrayColumns.from_family(family.fit(train.images), train.images)
chosen = ShareBoost(rounds=20).fit(columns, train.labels).to_classifier(family)

# %%
# ``head="linear"`` moves templates and weights alone; ``"products"`` adds products of pairs of features.

tuned = {"as chosen": chosen}
for head in ("linear", "products"):
    settings = FineTuning(epochs=30, batch=32, head=head, random_state=0)
    tuned[head] = fine_tune(chosen, train.images, train.labels, settings)
errors = {}
for name, classifier in tuned.items():
    errors[name] = (classifier.predict(test.images) != test.labels).mean()
    print(
        f"{name:10} {errors[name]:6.2%} of the test images are wrong, "
        f"{classifier.macs:,} multiply-accumulates"
    )
assert tuned["linear"].macs == chosen.macs < tuned["products"].macs
assert max(errors["linear"], errors["products"]) < errors["as chosen"]

# %%
# The first templates, before and after:

figure, axes = plt.subplots(2, 10, figsize=(9, 2))
for row, name in zip(axes, ("as chosen", "linear"), strict=True):
    for axis, feature in zip(row, tuned[name].features[:10], strict=True):
        axis.imshow(feature["template"], cmap="gray")
        axis.set_axis_off()
    row[0].set_title(name, fontsize=9, loc="left")
plt.show()
