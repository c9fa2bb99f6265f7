"""
Columns that are not normal
===========================

A Gaussian network describes columns as if they were normal. Real columns are skewed,
bounded or have two peaks. By default :class:`~sklearn_latent.IdealParentGaussianBN`
estimates for each column how its values become normal scores, and learns a network of
the scores. Likelihoods, samples and predictions stay in the units of the columns.

The data are measurements of cell nuclei from scikit-learn's breast cancer table.
"""

# %%
# Means of ten measurements of 569 tumours. Held-out rows decide which columns are bent.
# Benign and malignant tumours are groups; here we look at margins alone, and begin with
# a network that has no classes of rows.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score

from sklearn_latent import IdealParentGaussianBN

table = load_breast_cancer(as_frame=True).data.iloc[:, :10]
model = IdealParentGaussianBN(n_classes=1).fit(table)
print([margin.name for margin in model.network_.margins])

# %%
# The upper pictures have the data and the fitted density of each column: that of rows
# that lack all others. The lower ones have the normal score of each value; a straight
# line is a column that is normal.
columns = [0, 1, 3, 6, 7]
figure, axes = plt.subplots(2, 5, figsize=(12, 4.5), sharex="col", layout="constrained")
for number, (upper, lower) in zip(columns, axes.T, strict=True):
    values = table.iloc[:, number].to_numpy()
    grid = np.linspace(values.min(), values.max(), 300)
    rows = pd.DataFrame(np.nan, index=range(len(grid)), columns=table.columns)
    rows.iloc[:, number] = grid
    upper.hist(values, bins=30, density=True, color="0.8")
    upper.plot(grid, np.exp(model.score_samples(rows)))
    upper.set_title(table.columns[number])
    lower.plot(grid, model.network_.margins[number].scores(grid))
axes[0, 0].set_ylabel("density")
axes[1, 0].set_ylabel("normal score")
plt.show()

# %%
# Log-density of held-out rows, in nats per value: densities are those of the columns in
# their own units, so that models with different margins can be compared. By default
# rows may also belong to hidden classes, which describe the groups.
for name, settings in (
    ("normal margins", {"margins": "normal"}),
    ("smooth margins", {"n_classes": 1}),
    ("margins, classes", {}),
):
    scores = cross_val_score(IdealParentGaussianBN(**settings), table, cv=5)
    print(f"{name:16s} {scores.mean() / table.shape[1]:.3f}")

# %%
# New rows look like the data. The share of sampled areas that are negative:
for name, fitted in (
    ("normal", IdealParentGaussianBN(margins="normal").fit(table)),
    ("auto", model),
):
    areas = fitted.sample(10_000, random_state=0)[0][:, 3]
    print(f"{name:8s} {np.mean(areas < 0):.4f}")
