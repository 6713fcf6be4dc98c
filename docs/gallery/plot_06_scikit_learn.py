"""
With scikit-learn
=================

Learners are scikit-learn estimators: pipelines, cross-validation and searches take them.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from visionshare import ShareBoost

# %%
# Any table of numbers will do: rows are examples, columns are candidates.

wine = load_wine()
X, y = wine.data, wine.target
print(X.shape)

# %%
# How many of the 13 columns does it take?

counts = [1, 2, 3, 4, 6, 8, 10, 13]
means = []
for n in counts:
    model = make_pipeline(StandardScaler(), ShareBoost(rounds=n))
    means.append(cross_val_score(model, X, y, cv=5).mean())
assert means[0] < 0.9 < max(means)
plt.figure(figsize=(6, 3))
plt.plot(counts, means, marker="o")
plt.xlabel("columns")
plt.ylabel("accuracy, 5-fold")
plt.tight_layout()
plt.show()

# %%
# Which ones? In the order in which they were chosen:

model = ShareBoost(rounds=4).fit(StandardScaler().fit_transform(X), y)
print([wine.feature_names[j] for j in model.support_])
assert len(set(model.support_)) == 4
