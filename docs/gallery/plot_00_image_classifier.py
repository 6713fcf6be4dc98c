"""
Images in, a classifier out
===========================

``ImageClassifier`` chooses features, layers and training by itself, within a budget of computation.
"""

import matplotlib.pyplot as plt

from visionshare import ImageClassifier
from visionshare.datasets import load_dataset

train, test = load_dataset("digits", "train"), load_dataset("digits", "test")

# %%
# At most 10 000 multiply-accumulates per image, learned from 600 images.

few = train.subset(slice(600))
model = ImageClassifier(budget=10_000, random_state=0)
model.fit(few.images, few.labels)
print(model)
assert model.cost_["macs"] <= 10_000

# %%
# What was tried, compared on training images that were held out:

results = model.search_results_
for proposal, error in zip(results["proposal"], results["error"], strict=True):
    print(f"{error:7.2%}  {proposal}")
assert min(results["error"]) < 0.1 < max(results["error"])

# %%
# The test images are read once, at the end.

wrong = model.predict(test.images) != test.labels
print(f"{wrong.mean():.2%} of the test images are wrong")
assert wrong.mean() < 0.08
figure, axes = plt.subplots(1, 8, figsize=(8, 1.4))
for axis, i in zip(axes, wrong.nonzero()[0], strict=False):
    axis.imshow(test.images[i], cmap="gray")
    axis.set_title(test.labels[i], fontsize=9)
for axis in axes:
    axis.set_axis_off()
figure.suptitle("mistakes", fontsize=9)
plt.show()
