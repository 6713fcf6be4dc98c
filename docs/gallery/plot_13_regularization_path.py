"""
A regularization path
=====================

From no feature to many: column generation, with a weaker penalty at each step.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from visionshare import GroupFeatureRegressor
from visionshare.learners.regularization_path import regularization_path

diabetes = load_diabetes()
names = diabetes.feature_names
X = StandardScaler().fit_transform(diabetes.data)
y = diabetes.target - diabetes.target.mean()

# %%
# ``alpha`` falls from the value at which the first weight appears. Each solution starts from the one before.

models = list(regularization_path(GroupFeatureRegressor(), X, y, n=15))
alphas = [model.alpha for model in models]
weights = np.zeros((len(models), X.shape[1]))
for i, model in enumerate(models):
    weights[i, model.support_] = np.ravel(model.coef_)

assert (np.diff(alphas) < 0).all()
assert len(models[0].support_) <= 1 < len(models[-1].support_)

figure, axis = plt.subplots(figsize=(7, 4))
for j, name in enumerate(names):
    axis.plot(alphas, weights[:, j], label=name)
axis.set(xscale="log", xlabel="alpha", ylabel="weight")
axis.invert_xaxis()
axis.legend(fontsize=7, ncols=2)
figure.tight_layout()
plt.show()
