"""
Filters from an infinite family
===============================

A family may be continuous: each round draws new random Gabor filters and keeps those that help.
"""

import matplotlib.pyplot as plt
import numpy as np

from visionshare import GaborBank, GroupFeatureClassifier
from visionshare.datasets import load_dataset
from visionshare.generators.draws import Draws
from visionshare.store import DrawnColumns

train, test = load_dataset("digits", "train"), load_dataset("digits", "test")
draws = Draws(GaborBank(pooling="max").fit(train.images), n=60, rounds=50)
model = GroupFeatureClassifier(alpha=1.0, search="sampled", rounds=40)
model.fit(DrawnColumns(draws, train.images), train.labels)

# %%
# What was chosen is an ordinary classifier.

classifier = model.to_classifier(draws)
error = (classifier.predict(test.images) != test.labels).mean()
print(f"{classifier.n_features} features, {error:.2%} of the test images are wrong")
assert error < 0.1

# %%
# The penalty keeps few filters, and of these some matter most: the norm of each filter's weights.

norms = np.linalg.norm(classifier.weights, axis=0)
assert np.count_nonzero(norms) == classifier.n_features
assert norms.max() > 2 * np.median(norms)
figure, axis = plt.subplots(figsize=(6, 3))
axis.bar(range(len(norms)), np.sort(norms)[::-1])
axis.set(xlabel="filter", ylabel="norm of its weights")
figure.tight_layout()
plt.show()
