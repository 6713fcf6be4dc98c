"""
Error against number of features
================================

One training gives a classifier of every size: take the first rounds.
"""

from itertools import pairwise

import matplotlib.pyplot as plt

from visionshare import PatchTemplates, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.datasets import load_dataset

train, test = load_dataset("digits", "train"), load_dataset("digits", "test")
family = PatchTemplates(patch_size=3, n_templates=100, grid=3, widths=(2.0,), random_state=0)
columns = ArrayColumns.from_family(family.fit(train.images), train.images)
classifier = ShareBoost(rounds=60).fit(columns, train.labels).to_classifier(family)

# %%
# ``classifier.at(t)`` is the classifier after ``t`` rounds. It has fewer features and costs less.

rounds = [2, 5, 10, 15, 20, 30, 40, 50, 60]
prefixes = [classifier.at(t) for t in rounds]
errors = {
    name: [100 * (c.predict(part.images) != part.labels).mean() for c in prefixes]
    for name, part in (("training images", train), ("test images", test))
}
# Each is smaller and cheaper than the next; with more features the error falls.
assert [c.n_features for c in prefixes] == rounds
assert all(a.macs < b.macs for a, b in pairwise(prefixes))
assert errors["test images"][-1] < errors["test images"][2] < errors["test images"][0]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True)
for name, values in errors.items():
    left.plot(rounds, values, marker="o", label=name)
    right.plot([c.macs for c in prefixes], values, marker="o")
left.set(xlabel="features", ylabel="error, %", yscale="log")
right.set(xlabel="multiply-accumulates per image")
left.legend()
plt.show()

# %%
# The curve shows what more features gain. To *choose* the number, use held-out training images, not the test
# images: ``visionshare train digits --set data.held_out=0.2`` does.
