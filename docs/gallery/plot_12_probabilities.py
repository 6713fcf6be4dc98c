"""
Probabilities that mean what they say
=====================================

Of a hundred labels with probability 0.8, about eighty should be right.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve

from visionshare import PatchTemplates, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.datasets import load_dataset

train, test = load_dataset("digits", "train"), load_dataset("digits", "test")
family = PatchTemplates(patch_size=3, n_templates=100, grid=3, widths=(2.0,), random_state=0)
columns = ArrayColumns.from_family(family.fit(train.images), train.images)

# %%
# Few features, so that there are errors to see.

model = ShareBoost(rounds=8).fit(columns, train.labels)
classifier = model.to_classifier(family)
print(f"temperature {classifier.temperature:.2f}")

# %%
# Scores divided by the temperature give the probabilities. It was fitted on examples that did not train the weights.

figure, axis = plt.subplots(figsize=(4, 4))
distances = []
axis.plot([0, 1], [0, 1], color="gray", linewidth=1)
right = classifier.predict(test.images) == test.labels
for name, scores in (
    ("with the temperature", classifier.decision_function(test.images) / classifier.temperature),
    ("without", classifier.decision_function(test.images)),
):
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    confidence = (powers / powers.sum(axis=1, keepdims=True)).max(axis=1)
    found, said = calibration_curve(right, confidence, n_bins=8, strategy="quantile")
    distances.append(np.abs(found - said).mean())
    axis.plot(said, found, marker="o", label=name)
axis.set(xlabel="probability that was said", ylabel="fraction that is right")
axis.legend()
figure.tight_layout()
plt.show()
# Confidence and accuracy differ by less than 0.1 on average.
assert distances[0] < 0.1
