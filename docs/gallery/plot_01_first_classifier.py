"""
A classifier from its parts
===========================

Put a family and a learner together: 40 features of 8×8 digits, and the mistakes.
"""

import matplotlib.pyplot as plt
from sklearn.metrics import ConfusionMatrixDisplay

from visionshare import PatchTemplates, ShareBoost, load
from visionshare.columns import ArrayColumns
from visionshare.datasets import load_dataset

# %%
# The images come with scikit-learn: two thirds train, a third tests.

train, test = load_dataset("digits", "train"), load_dataset("digits", "test")
print(train.images.shape, test.images.shape)

# %%
# A **family** describes candidate features. Here: small templates, each with a mask that says where in the image it
# counts. ``fit`` learns the templates from the training images.

family = PatchTemplates(patch_size=3, n_templates=100, grid=3, widths=(2.0,), random_state=0)
family.fit(train.images)
print(family.n_features_, "candidates")
assert family.n_features_ >= 500

# %%
# A **learner** chooses a few of them, one each round, for all classes together.

columns = ArrayColumns.from_family(family, train.images)
model = ShareBoost(rounds=40).fit(columns, train.labels)

# %%
# What remains is a **compact classifier**: 40 features and a small weight matrix.

classifier = model.to_classifier(family)
predicted = classifier.predict(test.images)
error = (predicted != test.labels).mean()
print(f"{error:.2%} of the test images are wrong")
print(f"{classifier.macs:,} multiply-accumulates per image, {classifier.nbytes:,} bytes")
assert classifier.n_features == 40
assert error < 0.06

ConfusionMatrixDisplay.from_predictions(test.labels, predicted, colorbar=False)
plt.show()

# %%
# One file holds it. It has data only: nothing in it can run.

classifier.save("digits.safetensors")
assert (load("digits.safetensors").predict(test.images) == predicted).all()
